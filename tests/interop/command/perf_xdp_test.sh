#!/bin/bash
# The xdp lane between two network namespaces joined by a virtual cable: operations, a UDP lane as peer, packets that get
# lost, a link that goes down and comes back, other traffic of the same interface, and a process that is killed.
# Status 77: not possible here (needs root, and a build and kernel with AF_XDP).
set -u
. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/namespaces.sh"

"$paceline" info --json >"$work/info.json"
if ! holds "$work/info.json" "[l for l in d['lanes'] if l['name'] == 'xdp'][0]['usable']"; then
  echo "skipped: $(python3 -c 'import json, sys
print([l for l in json.load(open(sys.argv[1]))["lanes"] if l["name"] == "xdp"][0]["reason"])' "$work/info.json")"
  exit 77
fi

# pair SERVER_LANE CLIENT_LANE ARGUMENTS...
pair() {
  local server_lane=$1 client_lane=$2 status=0
  shift 2
  inside $a "$paceline" perf server --lane $server_lane --device v0 >"$work/server" 2>&1 &
  local server=$!
  inside $b "$paceline" perf client 198.51.100.1 --lane $client_lane --device v0 --json "$work/r.json" "$@" \
    >"$work/client" 2>&1 || { status=$?; kill $server; }
  wait $server || status=$?
  [ $status -eq 0 ] || { fail "$server_lane and $client_lane, $*"; cat "$work/server" "$work/client" >&2; }
  field "$work/r.json" "d['verified']"
}

attached() { inside $1 ip link show v0 2>/dev/null | grep -q xdp; }
# The program is on no interface any more, once the kernel has cleared away what the processes had.
none_attached() {
  for space in $a $b; do
    for _ in $(seq 50); do
      attached $space || break
      sleep 0.1
    done
    ! attached $space || fail "$1: a program is left on v0 of $space"
  done
}

pair xdp xdp --size 200000 --iterations 50
pair xdp xdp --op write --size 200000 --iterations 50
pair xdp xdp --op read --size 64 --iterations 200
pair xdp udp --size 200000 --iterations 50
pair udp xdp --op write --size 200000 --iterations 50
pair xdp xdp --size 200000 --iterations 50 --impair loss=3%,seed=5
field "$work/r.json" "d['retransmits'] > 0"
none_attached "after measurements"

# Large packets, and an interface that takes no more than small ones.
inside $a ip link set v0 mtu 9000
pair xdp xdp --size 200000 --iterations 50
inside $b ip link set v0 mtu 9000
pair xdp xdp --size 200000 --iterations 50
pair udp xdp --op write --size 200000 --iterations 50
for space in $a $b; do inside $space ip link set v0 mtu 1500; done
none_attached "after large packets"

# On the way to a UDP lane packets can be dropped in the kernel too, as nothing of the receiver's own is in between.
if inside $b nft -f - 2>"$work/nft" <<RULES
table inet paceline {
  chain drops {
    type filter hook input priority 0
    meta l4proto udp numgen random mod 100 < 3 drop
  }
}
RULES
then
  pair xdp udp --size 200000 --iterations 50
  field "$work/r.json" "d['retransmits'] > 0"
  inside $b nft flush ruleset
else
  echo "without drops: nftables is not usable here: $(head -1 "$work/nft")"
fi

# Meanwhile the link goes down and comes back, and a connection by TCP is made and used.
python3 -c "print('x' * 1000000)" >"$work/text"
inside $a "$paceline" perf server --lane xdp --device v0 >"$work/server" 2>&1 &
server=$!
inside $b "$paceline" perf client 198.51.100.1 --lane xdp --device v0 --size 100000 --rate 5 --seconds 4 \
  --json "$work/r.json" >"$work/client" 2>&1 &
client=$!
sleep 1
inside $a ip link set v0 down
sleep 0.3
inside $a ip link set v0 up
inside $a python3 -m http.server --bind 198.51.100.1 --directory "$work" 8080 >"$work/http" 2>&1 &
http=$!
for _ in $(seq 50); do
  inside $b python3 -c "
import urllib.request
print(len(urllib.request.urlopen('http://198.51.100.1:8080/text', timeout=5).read()))" >"$work/fetched" 2>&1 && break
  sleep 0.1
done
grep -qx 1000001 "$work/fetched" || { fail "TCP beside the lane"; cat "$work/fetched" >&2; }
kill $http
wait $client || { fail "the client, with a link that went down"; cat "$work/client" >&2; kill $server; }
wait $server || { fail "the server, with a link that went down"; cat "$work/server" >&2; }
field "$work/r.json" "d['verified'] and d['retransmits'] > 0"

# Meanwhile there is no second lane on the interface. Who is killed leaves nothing behind, and the next one finds the
# interface free.
nsenter --net=/run/netns/$a "$paceline" perf server --lane xdp --device v0 >"$work/server" 2>&1 &
server=$!
PACELINE_PEER_TIMEOUT_MS=1000 nsenter --net=/run/netns/$b "$paceline" perf client 198.51.100.1 --lane xdp --device v0 \
  --rate 1 --seconds 60 >"$work/client" 2>&1 &
client=$!
for _ in $(seq 100); do
  attached $a && attached $b && break
  sleep 0.1
done
attached $a || fail "no program on v0 while a lane is there"
inside $a "$paceline" perf local --lane xdp --device v0 >"$work/second" 2>&1 && fail "two lanes on one interface"
grep -qF "interface v0 has an XDP program already" "$work/second" || { fail "what a second lane says"; cat "$work/second" >&2; }
sleep 0.5
kill -KILL $server $client
wait $server $client 2>/dev/null
none_attached "after SIGKILL"
pair xdp xdp --size 1000 --iterations 20

# What it says where it cannot be.
inside $a "$paceline" perf local --lane xdp >"$work/none" 2>&1 && fail "a lane without an interface"
grep -qF 'lane "xdp" needs to be told its interfaces' "$work/none" || { fail "without an interface"; cat "$work/none" >&2; }
finish
