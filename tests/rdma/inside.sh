#!/usr/bin/env bash
# What tests/rdma/run.sh runs in the emulated machine.
set -euo pipefail
cd "$(dirname "$0")/../.."
export PATH=/usr/sbin:/usr/bin:/sbin:/bin TMPDIR=/dev/shm HOME=/dev/shm LC_ALL=C.UTF-8 GOTRACEBACK=all
mount -t tmpfs shm /dev/shm
ip link set lo up
ip addr add 10.0.0.1/24 dev dummy0
ip link set dummy0 mtu 9000 up # packets of 4096 bytes, as on RoCE networks, and not of 1024
rdma link add rxe0 type rxe netdev dummy0
ulimit -l unlimited

build/rdma/ofi.test -test.run '^TestVerbs' -test.v -test.timeout 10m "$@"
build/rdma/remote.test -test.run '^TestVerbs|^TestNoPayloadOverTheConnection$/^libfabric$|^TestSmallUpdates$/^libfabric$' -test.v -test.timeout 10m "$@"
case "$*" in *short*) syncs='20 65536' ;; *) syncs='1000 1048576' ;; esac
.venv/bin/python tests/rdma/job.py 'verbs;ofi_rxm' $syncs
