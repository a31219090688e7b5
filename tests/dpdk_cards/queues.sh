# The dpdk lane over two network cards with two queues each, which spread what arrives over them by a hash (RSS).
#   queues.sh FOLDER_OF_THE_BUILD MODEL
set -uo pipefail
. "$(dirname "$0")/pairs.sh"

model=$2 first=0000:00:10.0 second=0000:00:11.0
hand_over "$first"
hand_over "$second"
check "$model: frame by frame" frames 2
addresses=(192.0.2.1/24,queues=2 192.0.2.2/24,queues=2)
pair "two queues" in_place "" --size 20000 --iterations 50
pair "write, two queues" in_place "" --op write --size 1M --iterations 5
addresses=(fd00::1/64,queues=2 fd00::2/64,queues=2)
pair "two queues, IPv6" in_place "" --size 20000 --iterations 50
finish
