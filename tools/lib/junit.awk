# Reads the JUnit file that ctest writes. Prints why each test was skipped, and as last line the numbers of tests that
# passed, failed and were skipped. Adds each test that failed, and the end of what it printed, to the file `failures`.
BEGIN { kept = 120 }  # lines of a failed test that are shown
function plain(text) {
  gsub(/&lt;/, "<", text); gsub(/&gt;/, ">", text); gsub(/&quot;/, "\"", text); gsub(/&apos;/, "'", text)
  gsub(/&amp;/, "\\&", text)
  return text
}
function attribute(line, key,    from) {
  from = index(line, " " key "=\"")
  if (!from) return ""
  line = substr(line, from + length(key) + 3)
  return plain(substr(line, 1, index(line, "\"") - 1))
}
/^[ \t]*<testcase / {
  name = attribute($0, "name"); status = attribute($0, "status"); reason = ""; wants = 0; skip = 0
  lines = 0; said = 0
  next
}
/^[ \t]*<skipped / && status == "notrun" && /message="SKIP_/ { skip = 1; next }
/^[ \t]*<\/testcase>/ {
  if (status == "run") ++passed
  else if (status == "disabled") { ++skipped; print "  skipped: " name ": disabled" }
  else if (skip) { ++skipped; print "  skipped: " name ": " (reason == "" ? "no reason given" : reason) }
  else {
    ++failed
    print preset ": FAILED " name >>failures
    for (i = lines > kept ? lines - kept : 0; i < lines; ++i) print "    " output[i % kept] >>failures
  }
  next
}
status == "fail" {
  line = plain($0)
  if (line ~ /^[ \t]*<system-out>/) said = 1
  sub(/^[ \t]*<system-out>/, "", line)
  last = sub(/<\/system-out>.*/, "", line)
  if (said) output[lines++ % kept] = line
  if (last) said = 0
  next
}
skip {
  line = plain($0); sub(/^[ \t]*<system-out>/, "", line); sub(/<\/system-out>.*/, "", line)
  if (line ~ /^\[  SKIPPED \]/) wants = 0
  else if (wants) reason = reason (reason == "" ? "" : " ") line
  else if (line ~ /: Skipped$/ && reason == "") wants = 1
  else if (line ~ /^[Ss]kipped: / && reason == "") { reason = line; sub(/^[Ss]kipped: /, "", reason) }
}
END { print passed + 0, failed + 0, skipped + 0 }
