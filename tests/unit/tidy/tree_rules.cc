#include "tests/unit/tidy/tree_rules.h"

#include <optional>
#include <regex>
#include <set>

namespace paceline::tidy {
namespace {

// The first line whose `files` matches a path speaks for that file: what it includes must match `may_include`. Both are
// ECMAScript regular expressions over a whole path. Headers of other packages have no place in the tree and are free
// here.
struct Layer {
  const char* files;
  const char* may_include;
};

constexpr Layer kLayers[] = {
    {"transport/base/.*", "transport/base/.*"},
    {"transport/wire/.*", "transport/(base|wire)/.*"},
    {"transport/crypto/.*", "transport/(base|crypto)/.*"},
    // Only the registry names the algorithms.
    {"cc/registry\\.cc", "(transport/base|cc)/.*"},
    {"cc/algorithms/.*", "(transport/base|cc)/.*"},
    {"cc/.*", "transport/base/.*|cc/[^/]*"},
    {"gpudirect/.*", "(transport/base|gpudirect)/.*"},
    // The core knows the interfaces of lanes and controllers, no single one of them.
    {"transport/core/.*", "transport/(base|wire|crypto|core)/.*|transport/lane/lane\\.h|cc/[^/]*"},
    {"transport/lane/[^/]*", "transport/base/.*|transport/lane/[^/]*"},
    // Only the factory names the lanes.
    {"transport/engine/lane_factory.*", "(transport|gpudirect)/.*|cc/[^/]*"},
    {"transport/engine/.*", "transport/(base|wire|core|engine)/.*|transport/lane/[^/]*|cc/[^/]*|gpudirect/.*"},
    // What gets installed includes nothing that does not.
    {"api/(cpp|c)/paceline/.*", "paceline/.*"},
    // The impairment shim is no lane but a coat around one, with counters of its own.
    {"api/.*",
     "(api|paceline)/.*|transport/(base|crypto|core|engine|lane/impair)/.*|transport/lane/[^/]*|cc/[^/]*|gpudirect/.*"},
    {"tools/.*", "(tools|api|paceline|transport|gpudirect)/.*|cc/[^/]*"},
    {"examples/.*", "paceline/.*|(api|examples)/.*"},
    {"tests/.*", ".*"},
};

std::string At(const SourceFile& file, size_t line_index) {
  return file.path + ":" + std::to_string(line_index + 1) + ": ";
}

// What a line includes with quotes; read from the text as written, because string literals are blank in `code`.
std::optional<std::string> QuotedInclude(const std::string& line) {
  static const std::regex kInclude(R"re(^\s*#\s*include\s+"([^"]+)".*)re");
  std::smatch match;
  if (!std::regex_match(line, match, kInclude)) return std::nullopt;
  return match[1].str();
}

bool BelongsToTree(const std::string& include) {
  static const std::regex kTop("(transport|cc|gpudirect|api|tools|tests|examples|paceline)/.*");
  return std::regex_match(include, kTop);
}

// A lane's own folder, "transport/lane/udp/", or nothing.
std::string LaneFolder(const std::string& path) {
  static const std::regex kLane("(transport/lane/[^/]+/).*");
  std::smatch match;
  return std::regex_match(path, match, kLane) ? match[1].str() : std::string();
}

bool IsHeader(const std::string& path) { return path.ends_with(".h"); }

// The sources that build files name: as they are, or with a variable in the name ("${name}_test.cc", in a loop).
struct BuiltFiles {
  std::set<std::string> names;
  std::vector<std::regex> patterns;

  bool Contains(const std::string& path) const {
    if (names.contains(path)) return true;
    for (const std::regex& pattern : patterns) {
      if (std::regex_match(path, pattern)) return true;
    }
    return false;
  }
};

BuiltFiles FilesNamedInBuild(const SourceTree& tree) {
  static const std::regex kSource(R"([\w./${}-]+\.(cc|c|h)\b)");
  static const std::regex kVariable(R"(\$\{\w+\})");
  BuiltFiles built;
  for (const SourceFile& file : tree.build_files) {
    const std::string folder = file.path.substr(0, file.path.rfind('/') + 1);
    for (const std::string& line : file.lines) {
      if (line.starts_with("#")) continue;
      for (std::sregex_iterator i(line.begin(), line.end(), kSource); i != std::sregex_iterator(); ++i) {
        std::string name = i->str();
        const bool from_top = name.starts_with("${PROJECT_SOURCE_DIR}/") || name.starts_with("${CMAKE_SOURCE_DIR}/");
        if (const size_t end = name.find("}/"); end != std::string::npos) name.erase(0, end + 2);
        name = std::filesystem::path(from_top ? name : folder + name).lexically_normal().generic_string();
        if (std::regex_search(name, kVariable)) {
          built.patterns.emplace_back(std::regex_replace(name, kVariable, "[^/]+"));
        } else {
          built.names.insert(name);
        }
      }
    }
  }
  return built;
}

std::set<std::string> FilesIncluded(const SourceTree& tree) {
  std::set<std::string> included;
  for (const SourceFile& file : tree.sources) {
    for (const std::string& line : file.lines) {
      const std::optional<std::string> include = QuotedInclude(line);
      if (!include || *include == file.path) continue;
      included.insert(*include);
      // A public header is included as its users do, without the folder it lives in.
      if (include->starts_with("paceline/")) {
        included.insert("api/cpp/" + *include);
        included.insert("api/c/" + *include);
      }
    }
  }
  return included;
}

}  // namespace

Complaints CheckLayers(const SourceFile& file) {
  std::string may_include;
  if (const std::string lane = LaneFolder(file.path); !lane.empty()) {
    may_include = "transport/base/.*|transport/lane/[^/]*|" + lane + ".*";
    // Those that speak UDP over Ethernet by themselves have frames, addresses and the watch over the link in common.
    static const std::regex kFrames("transport/lane/(xdp|dpdk)/");
    if (std::regex_match(lane, kFrames)) may_include += "|transport/lane/(ethernet|udp)/.*";
  } else {
    for (const Layer& layer : kLayers) {
      if (!std::regex_match(file.path, std::regex(layer.files))) continue;
      may_include = layer.may_include;
      break;
    }
  }
  const std::regex allowed(may_include);
  Complaints complaints;
  for (size_t i = 0; i < file.lines.size(); ++i) {
    const std::optional<std::string> include = QuotedInclude(file.lines[i]);
    if (!include || !BelongsToTree(*include) || std::regex_match(*include, allowed)) continue;
    complaints.push_back(At(file, i) + "may not include " + *include);
  }
  return complaints;
}

Complaints CheckPurity(const SourceFile& file) {
  static const std::regex kPureFolders("(transport/(base|wire|crypto|core)|cc)/.*");
  // What is the process's and not an endpoint's: OpenSSL's library context, which engines of several threads share.
  static const std::regex kOfTheProcess("transport/crypto/library_context\\.(h|cc)");
  if (!std::regex_match(file.path, kPureFolders) || std::regex_match(file.path, kOfTheProcess)) return {};
  static const std::regex kHeaders(
      R"(^\s*#\s*include\s+<(chrono|ctime|time\.h|thread|(shared_)?mutex|condition_variable|future|pthread\.h|iostream|fstream)"
      R"(|cstdio|stdio\.h|random|unistd\.h|fcntl\.h|poll\.h|sys/.*|net/.*|netinet/.*|arpa/.*|linux/.*)>.*)");
  static const std::regex kNames(
      R"(\bstd::(chrono|thread|jthread|this_thread|(shared_)?mutex|async|random_device|mt19937|cout|cerr|clog|getenv|rand|time)\b)"
      R"(|(^|[^\w.:>])(s?rand|drand48|l?rand48|getenv|secure_getenv|clock_gettime|gettimeofday|socket|sendto|sendmsg)"
      R"(|recvfrom|recvmsg|f?printf|puts|fopen|getrandom|usleep|nanosleep)\s*\()"
      R"(|(^|[^\w.:>])time\s*\(\s*(nullptr|NULL|0)\s*\))");
  Complaints complaints;
  for (size_t i = 0; i < file.code.size(); ++i) {
    std::smatch match;
    if (std::regex_match(file.code[i], kHeaders)) {
      complaints.push_back(At(file, i) + "clocks, threads, randomness and I/O come in from outside: " + file.lines[i]);
    } else if (std::regex_search(file.code[i], match, kNames)) {
      complaints.push_back(At(file, i) + "clocks, threads, randomness and I/O come in from outside: " + match.str());
    }
  }
  return complaints;
}

Complaints CheckConditionals(const SourceFile& file) {
  static const std::regex kConditional(R"(^\s*#\s*(if|ifdef|ifndef|elif)\b(.*))");
  // What may differ: an include guard (headers for C), the language (headers for C and C++), the compiler, the
  // processor, a sanitizer or a fuzzer.
  static const std::regex kAllowed(
      R"(.*\b(PACELINE_\w+_H_|__cplusplus|__clang__|__GNUC__|__x86_64__|__aarch64__|__has_feature|__SANITIZE_\w+__)"
      R"(|FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION|NDEBUG)\b.*)");
  Complaints complaints;
  for (size_t i = 0; i < file.code.size(); ++i) {
    std::smatch match;
    if (!std::regex_match(file.code[i], match, kConditional)) continue;
    const std::string condition = match[2].str();
    if (std::regex_match(condition, kAllowed)) continue;
    complaints.push_back(At(file, i) + "no #if for features, CMake chooses files: #" + match[1].str() + condition);
  }
  return complaints;
}

Complaints CheckShape(const SourceFile& file) {
  constexpr size_t kMostLines = 1000;
  Complaints complaints;
  if (file.lines.size() > kMostLines) {
    complaints.push_back(file.path + ": " + std::to_string(file.lines.size()) + " lines, more than 1000: split it");
  }
  if (IsHeader(file.path)) {
    static const std::regex kGuard(R"(^\s*#(pragma once|ifndef PACELINE_\w+_H_?)\s*$)");
    bool guarded = false;
    for (const std::string& line : file.lines) guarded = guarded || std::regex_match(line, kGuard);
    if (!guarded) complaints.push_back(file.path + ": a header without #pragma once");
    if (file.lines.empty() || (!file.lines[0].starts_with("//") && !file.lines[0].starts_with("/*"))) {
      complaints.push_back(file.path + ":1: a header opens with a comment that says what it is for");
    }
  }
  static const std::regex kLeftToDo(R"(.*//.*\b(TO)(DO|FIX)\b.*|.*//.*\b(FIX)(ME)\b.*)");
  for (size_t i = 0; i < file.lines.size(); ++i) {
    if (std::regex_match(file.lines[i], kLeftToDo)) complaints.push_back(At(file, i) + "finish it or open an issue");
  }
  return complaints;
}

Complaints CheckDeadFiles(const SourceTree& tree) {
  const BuiltFiles built = FilesNamedInBuild(tree);
  const std::set<std::string> included = FilesIncluded(tree);
  Complaints complaints;
  for (const SourceFile& file : tree.sources) {
    if (built.Contains(file.path)) continue;
    if (!IsHeader(file.path)) {
      complaints.push_back(file.path + ": no CMakeLists.txt names it");
    } else if (!included.contains(file.path)) {
      complaints.push_back(file.path + ": nobody includes it");
    }
  }
  return complaints;
}

}  // namespace paceline::tidy
