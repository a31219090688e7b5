#!/bin/bash
# `paceline info` says which GPU there is and which way its memory would take over each RDMA card and over other lanes,
# and where there is none, why.
# Arguments: the command, the folder of the fake CUDA driver, that of the fake libibverbs (where it was built).
set -euo pipefail
paceline=$1 cuda=$2 verbs=${3-}
fail() { echo "failed: $*"; exit 1; }

LD_LIBRARY_PATH=$cuda "$paceline" info --json |
  python3 -c '
import json, sys
gpus = json.load(sys.stdin)["gpus"]
device = gpus["devices"][0]
assert device["name"] == "Fake GPU 0" and device["registration"] == "staging" and device["reason"], device
assert gpus["driver"] == "CUDA 12.2", gpus' || fail "the GPU of the fake driver"
text=$(LD_LIBRARY_PATH=$cuda FAKE_CUDA_FAIL=cuInit:1:2 "$paceline" info)
grep -q 'cuInit: CUDA_ERROR_OUT_OF_MEMORY (2)' <<<"$text" || fail "the reason for a driver that does not start: $text"

# over_cards WHAT TEXT: memory of the GPU travels so over both fake cards.
over_cards() {
  local text
  text=$(LD_LIBRARY_PATH=$cuda:$verbs "$paceline" info)
  grep -F "$2" <<<"$text" | grep -qF ' over fake0:1, fake1:1; by staging' || fail "$1: $text"
}
if [[ -n $verbs ]]; then
  over_cards "cards and GPU with dma-bufs" 'by dma-buf (GPU and card have dma-bufs)'
  FAKE_VERBS_DMA_BUF=none over_cards "cards without dma-bufs" \
    'by staging (the card takes no dma-buf (ibv_reg_dmabuf_mr: Operation not supported), and the module'
fi
exit 0
