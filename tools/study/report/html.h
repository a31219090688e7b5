// Putting text and data into HTML so that no name or value can become markup or script.
//
// Who calls it: the report only; pure functions, any thread.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::tools {

// Text for element content and for attributes in double or single quotes.
std::string EscapeHtml(std::string_view text);

// JSON for the inside of a <script type="application/json">: every '<', '>' and '&' is written as \u00XX, so neither
// "</script" nor "<!--" can appear. Bytes that are not UTF-8 become U+FFFD.
std::string ScriptJson(const nlohmann::json& value);

// Replaces each {{name}} (lower-case letters and '_') by its value, in one pass: values are not searched again. A name
// without a value stays as it is.
std::string FillTemplate(std::string_view text, const std::map<std::string, std::string, std::less<>>& values);

// The names that a template asks for, in order of appearance.
std::vector<std::string> TemplateNames(std::string_view text);

}  // namespace paceline::tools
