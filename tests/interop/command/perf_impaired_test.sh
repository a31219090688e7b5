#!/bin/bash
# A bad network between real processes: all arrives intact, and little more is sent again than was lost.
set -u
. "$(dirname "$0")/common.sh"

for bad in loss=1% loss=10% dup=5% reorder=10% corrupt=1% loss=2%,dup=5%,reorder=5%,corrupt=1%; do
  expect 0 "yes" perf local --size 300000 --iterations 60 --impair $bad,seed=5 --json "$work/send.json"
  field "$work/send.json" "d['verified']"
  case $bad in
    loss=*% ) [ "${bad#*,}" = "$bad" ] &&
      field "$work/send.json" "d['retransmits'] > 0 and d['retransmitted_bytes'] <= 1.3 * d['impaired_bytes']" ;;
  esac
done
for op in write read write_imm atomic; do
  expect 0 "yes" perf local --op $op --size 50000 --iterations 60 --impair loss=3%,dup=3%,corrupt=1%,seed=9
done
expect 0 "yes" perf alltoall --ranks 4 --size 30000 --iterations 10 --impair loss=2%,dup=2%
finish
