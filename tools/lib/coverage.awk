# Reads the lines of gcovr's --csv. Prints how many lines of each folder have run, the files of which few have, and at the
# end the sum over transport/ and cc/. Exit status 1 when that is below `least` percent. `left_out`: files that were not
# counted, separated by blanks.
BEGIN { FS = ","; listed = 80 }  # files below so many percent are listed
function percent(part, whole) { return whole ? 100 * part / whole : 0 }
function row(name, part, whole) { printf "%-22s %8d %8d %8.1f\n", name, whole, part, percent(part, whole) }
FNR > 1 && $2 > 0 {
  depth = split($1, part, "/")
  folder = part[1]
  if (folder == "transport") folder = folder "/" part[2] (part[2] == "lane" && depth > 3 ? "/" part[3] : "")
  if (!(folder in lines)) order[++folders] = folder
  lines[folder] += $2; ran[folder] += $3
  if (folder ~ /^(transport|cc)/) { all += $2; all_ran += $3 }
  if (percent($3, $2) < listed) low[++lows] = sprintf("  %-45s %5.1f", $1, percent($3, $2))
}
END {
  printf "%-22s %8s %8s %8s\n", "folder", "lines", "ran", "percent"
  for (i = 1; i <= folders; ++i) row(order[i], ran[order[i]], lines[order[i]])
  if (lows) print "files below " listed " percent:"
  for (i = 1; i <= lows; ++i) print low[i]
  if (left_out != "") print "left out, for want of hardware: " left_out
  row("transport and cc", all_ran, all)
  if (percent(all_ran, all) >= least) exit 0
  print "This is below " least " percent."
  exit 1
}
