# Turns files into a C++ source that holds them as std::string_view constants. Run as a script:
#   cmake -DOUT=assets.cc -DHEADER=path/assets.h -DNAMESPACE=a::b "-DFILES=kName=path|kOther=path" -P embed_files.cmake
string(REPLACE "|" ";" entries "${FILES}")
set(source "// Written by embed_files.cmake; do not edit.\n#include \"${HEADER}\"\n\n")
string(APPEND source "namespace ${NAMESPACE} {\nnamespace {\n\n")
set(views "")
foreach(entry IN LISTS entries)
  string(REGEX MATCH "^([A-Za-z0-9_]+)=(.+)$" matched "${entry}")
  if(NOT matched)
    message(FATAL_ERROR "embed_files.cmake: '${entry}' is not NAME=FILE")
  endif()
  set(name ${CMAKE_MATCH_1})
  file(READ "${CMAKE_MATCH_2}" hex HEX)
  string(REGEX REPLACE "(................................................................)" "\\1\n" hex "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  # A closing zero keeps an empty file legal; the view does not count it.
  string(APPEND source "const unsigned char ${name}Bytes[] = {\n${bytes}0};\n\n")
  string(APPEND views
         "const std::string_view ${name}(reinterpret_cast<const char*>(${name}Bytes), sizeof(${name}Bytes) - 1);\n")
endforeach()
file(WRITE "${OUT}" "${source}}  // namespace\n\n${views}\n}  // namespace ${NAMESPACE}\n")
