#include "tools/study/report/html.h"

#include <cstddef>
#include <optional>

namespace paceline::tools {
namespace {

struct Placeholder {
  size_t begin;  // of "{{"
  size_t end;    // behind "}}"
  std::string_view name;
};

std::optional<Placeholder> NextPlaceholder(std::string_view text, size_t from) {
  for (size_t begin = text.find("{{", from); begin != std::string_view::npos; begin = text.find("{{", begin + 1)) {
    const size_t name = begin + 2;
    size_t at = name;
    while (at < text.size() && ((text[at] >= 'a' && text[at] <= 'z') || text[at] == '_')) ++at;
    if (at > name && text.substr(at, 2) == "}}") return Placeholder{begin, at + 2, text.substr(name, at - name)};
  }
  return std::nullopt;
}

}  // namespace

std::string EscapeHtml(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '\0':
        out += "\xEF\xBF\xBD";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string ScriptJson(const nlohmann::json& value) {
  const std::string plain = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string out;
  out.reserve(plain.size());
  for (const char c : plain) {
    switch (c) {
      case '<':
        out += "\\u003c";
        break;
      case '>':
        out += "\\u003e";
        break;
      case '&':
        out += "\\u0026";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string FillTemplate(std::string_view text, const std::map<std::string, std::string, std::less<>>& values) {
  std::string out;
  size_t done = 0;
  while (const auto next = NextPlaceholder(text, done)) {
    out.append(text.substr(done, next->begin - done));
    const auto value = values.find(next->name);
    out.append(value == values.end() ? text.substr(next->begin, next->end - next->begin)
                                     : std::string_view(value->second));
    done = next->end;
  }
  out.append(text.substr(done));
  return out;
}

std::vector<std::string> TemplateNames(std::string_view text) {
  std::vector<std::string> names;
  size_t done = 0;
  while (const auto next = NextPlaceholder(text, done)) {
    names.emplace_back(next->name);
    done = next->end;
  }
  return names;
}

}  // namespace paceline::tools
