#!/bin/bash
# fi_info finds the provider, offers it per type of endpoint and interface with the loopback last, and filters by what is
# asked for. No provider of libfabric's own stands on it.
set -euo pipefail
provider=$1
[[ -n $provider ]] || { echo "skipped: libfabric-dev not installed"; exit 77; }
command -v fi_info >/dev/null || { echo "skipped: libfabric-bin not installed"; exit 77; }
export FI_PROVIDER_PATH=$provider FI_PROVIDER=paceline
unset PACELINE_BIND

fail() { echo "failed: $*"; exit 1; }

all=$(fi_info -p paceline)
[[ $(grep 'type:' <<<"$all" | uniq | tr -d ' \n') == type:FI_EP_RDMtype:FI_EP_MSGtype:FI_EP_DGRAM ]] ||
  fail "not first FI_EP_RDM, then FI_EP_MSG, then FI_EP_DGRAM: $all"
grep -q 'provider: .*;' <<<"$all" && fail "another provider stands on it: $all"
[[ $(grep 'domain:' <<<"$all" | tail -1) == *' lo' ]] || fail "the loopback interface is not the last: $all"
fi_info -p paceline -d lo -t FI_EP_RDM -c 'FI_MSG|FI_TAGGED|FI_RMA|FI_DIRECTED_RECV|FI_SOURCE|FI_MULTI_RECV' >/dev/null ||
  fail "what is offered is not found"
fi_info -p paceline -t FI_EP_MSG -c 'FI_MSG|FI_TAGGED|FI_RMA|FI_ATOMIC|FI_MULTI_RECV' >/dev/null ||
  fail "what is offered with FI_EP_MSG is not found"
fi_info -p paceline -t FI_EP_MSG -c FI_SOURCE >/dev/null 2>&1 && fail "connected endpoints have sources"
fi_info -p paceline -t FI_EP_DGRAM -c 'FI_MSG|FI_SOURCE|FI_DIRECTED_RECV|FI_MULTI_RECV' >/dev/null ||
  fail "what is offered with FI_EP_DGRAM is not found"
for more in FI_TAGGED FI_RMA FI_ATOMIC; do
  fi_info -p paceline -t FI_EP_DGRAM -c $more >/dev/null 2>&1 && fail "$more is offered with FI_EP_DGRAM"
done
fi_info -p paceline -c 'FI_COLLECTIVE' >/dev/null 2>&1 && fail "collectives are offered"
[[ $(PACELINE_BIND=127.0.0.1,lo fi_info -p paceline -t FI_EP_RDM | grep -c 'domain: 127.0.0.1,lo') == 1 ]] ||
  fail "PACELINE_BIND does not make one domain of several ports"
exit 0
