# Writes a C++ file with the compiled program as bytes. Arguments: IN, OUT.
file(READ ${IN} hex HEX)
string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1, " bytes "${hex}")
file(WRITE ${OUT} "// Made from xdp_program.bpf.c by embed_program.cmake.
#include \"transport/lane/xdp/xdp_program.h\"

namespace paceline {
namespace {

alignas(8) constexpr uint8_t kProgram[] = {\n${bytes}\n};

}  // namespace

std::span<const uint8_t> XdpProgramObject() { return kProgram; }

}  // namespace paceline
")
