#!/bin/bash
# `paceline info` says which GPU there is, which card is nearest to it and which way its memory would take over each card
# and over other lanes, and where there is none, why.
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
  # fake1 is behind the same PCIe switch as the GPU, fake0 behind another root port. The GPU's identifier is a way from
  # the kernel's folder of PCI devices to the one of this test, in small letters as identifiers are.
  if [[ -d /sys/bus/pci/devices ]]; then
    machine=/tmp/info_gpu_test.$$
    trap 'rm -rf "$machine"' EXIT
    root=$machine/pci0000:3a
    mkdir -p "$root"/0000:3a:00.0/0000:3b:00.0/{0000:3d:00.0,0000:3e:00.0} "$root"/0000:3a:02.0/0000:40:00.0 \
      "$machine"/cards/fake{0,1}
    ln -s "$root/0000:3a:02.0/0000:40:00.0" "$machine/cards/fake0/device"
    ln -s "$root/0000:3a:00.0/0000:3b:00.0/0000:3e:00.0" "$machine/cards/fake1/device"
    ln -s "$root/0000:3a:00.0/0000:3b:00.0/0000:3d:00.0" "$machine/gpu"
    export FAKE_VERBS_SYSFS=$machine/cards FAKE_CUDA_PCI_BUS_ID=../../../..$machine/gpu
    text=$(LD_LIBRARY_PATH=$cuda:$verbs "$paceline" info)
    grep -qF '. Nearest card: fake1:1 (same PCIe switch)' <<<"$text" || fail "the card nearest to the GPU: $text"
    grep -F 'yes  fake0:1' <<<"$text" | grep -qF '; nearest GPU: 0 (same root complex)' || fail "fake0's GPU: $text"
    LD_LIBRARY_PATH=$cuda:$verbs "$paceline" info --json | python3 -c '
import json, sys
info = json.load(sys.stdin)
cards = {card["name"]: (card["distance"], card["hops"]) for card in info["gpus"]["devices"][0]["hcas"]}
assert cards == {"fake0:1": ("same root complex", 5), "fake1:1": ("same PCIe switch", 2)}, cards
assert [card["nearest_gpus"] for card in info["hcas"]["devices"]] == [[0], [0]], info["hcas"]' || fail "distances as JSON"
  fi
fi
exit 0
