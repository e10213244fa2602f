#!/bin/bash
# What a careful person would write by hand: the cluster of the bench by SSH, as parallel as it can be. Ends in the state that clusterctl
# ends in: engine, etcd with TLS, virtual address, swarm with three managers and a worker. Prints its stages in milliseconds.
set -euo pipefail

# shellcheck disable=SC2154 # from `scripts/lab env`
key=$LAB_SSH_KEY known=$LAB_KNOWN_HOSTS vip=$LAB_VIP
work=$(mktemp -d)
# The shared connections end with the script: they hold its output open, and whoever reads that would wait for them.
finish() {
  local node
  for node in "${all[@]}"; do ssh -o ControlPath="$work/%h" -O exit "${addr[$node]}" 2>/dev/null; done
  rm -rf "$work"
}
trap finish EXIT

masters=(node1 node2 node3) all=(node1 node2 node3 node4)
declare -A addr
for i in 1 2 3 4; do addr[node$i]=${LAB_SUBNET%.*}.1$i; done

on() {
  local node=$1
  shift
  ssh -i "$key" -o UserKnownHostsFile="$known" -o StrictHostKeyChecking=yes -o ControlMaster=auto -o ControlPersist=60 \
    -o ControlPath="$work/%h" -o LogLevel=ERROR "root@${addr[$node]}" "$@"
}

# Runs a function on every named node at once; any failure is a failure of the whole.
everywhere() {
  local task=$1 node pids=()
  shift
  for node in "$@"; do "$task" "$node" & pids+=($!); done
  for pid in "${pids[@]}"; do wait "$pid"; done
}

now() { date +%s%3N; }
last=$(now)
lap() {
  local t
  t=$(now)
  echo "$1 $((t - last))"
  last=$t
}

install() {
  local extra=''
  [ "$1" = node4 ] || extra='etcd-server etcd-client ucarp'
  on "$1" "printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d; chmod +x /usr/sbin/policy-rc.d
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends docker.io $extra >/var/log/bench-apt.log 2>&1
    rm /usr/sbin/policy-rc.d" </dev/null
}

authority() {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj /CN=bench -keyout "$work/ca.key" \
    -out "$work/ca.crt" 2>/dev/null
  local node
  for node in "${masters[@]}"; do
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$node" -keyout "$work/$node.key" -out "$work/$node.csr" 2>/dev/null
    openssl x509 -req -in "$work/$node.csr" -CA "$work/ca.crt" -CAkey "$work/ca.key" -CAcreateserial -days 1095 -out "$work/$node.crt" \
      -extfile <(echo "subjectAltName=DNS:$node,DNS:localhost,IP:127.0.0.1,IP:${addr[$node]}") 2>/dev/null
  done
  head -c 9 /dev/urandom | base64 >"$work/secret"
}

prepare() {
  on "$1" "hostname $1; echo $1 >/etc/hostname
    printf '${addr[node1]} node1\n${addr[node2]} node2\n${addr[node3]} node3\n${addr[node4]} node4\n' >>/etc/hosts
    mkdir -p /etc/docker
    echo '{\"log-driver\":\"json-file\",\"log-opts\":{\"max-size\":\"10m\",\"max-file\":\"3\"}}' >/etc/docker/daemon.json
    systemctl enable -q --now docker
    until docker info >/dev/null 2>&1; do sleep 0.2; done" </dev/null
}

member() {
  local node=$1 cluster=''
  for m in "${masters[@]}"; do cluster+="$m=https://${addr[$m]}:2380,"; done
  tar -C "$work" -c ca.crt "$node.key" "$node.crt" secret | on "$node" "mkdir -p /etc/etcd; tar -C /etc/etcd -x
    chown -R etcd /etc/etcd; chmod 600 /etc/etcd/*.key /etc/etcd/secret; mkdir -p -m 700 /var/lib/etcd/bench; chown etcd /var/lib/etcd/bench
    cat >/etc/etcd/etcd.yml <<END
name: $node
data-dir: /var/lib/etcd/bench
listen-client-urls: https://0.0.0.0:2379
advertise-client-urls: https://${addr[$node]}:2379
listen-peer-urls: https://${addr[$node]}:2380
initial-advertise-peer-urls: https://${addr[$node]}:2380
initial-cluster: ${cluster%,}
initial-cluster-state: new
client-transport-security: {cert-file: /etc/etcd/$node.crt, key-file: /etc/etcd/$node.key, client-cert-auth: true, trusted-ca-file: /etc/etcd/ca.crt}
peer-transport-security: {cert-file: /etc/etcd/$node.crt, key-file: /etc/etcd/$node.key, client-cert-auth: true, trusted-ca-file: /etc/etcd/ca.crt}
END
    mkdir -p /etc/systemd/system/etcd.service.d
    printf '[Service]\nExecStart=\nExecStart=/usr/bin/etcd --config-file /etc/etcd/etcd.yml\n' >/etc/systemd/system/etcd.service.d/bench.conf
    printf '#!/bin/sh\nip addr add $vip/32 dev eth0 2>/dev/null; exit 0\n' >/usr/local/sbin/vip-up
    printf '#!/bin/sh\nip addr del $vip/32 dev eth0 2>/dev/null; exit 0\n' >/usr/local/sbin/vip-down
    chmod +x /usr/local/sbin/vip-*
    printf '[Service]\nExecStart=/usr/sbin/ucarp --interface=eth0 --srcip=${addr[$node]} --vhid=7 --passfile=/etc/etcd/secret --addr=$vip --upscript=/usr/local/sbin/vip-up --downscript=/usr/local/sbin/vip-down --shutdown\nRestart=always\n[Install]\nWantedBy=multi-user.target\n' >/etc/systemd/system/bench-ucarp.service
    systemctl daemon-reload; systemctl enable -q --now etcd bench-ucarp"
}

token() { on node1 docker swarm join-token -q "$1" </dev/null; }
join() { on "$1" docker swarm join --token "$(cat "$work/$([ "$1" = node4 ] && echo worker || echo manager)")" "${addr[node1]}:2377" </dev/null >/dev/null; }

swarm() {
  on node1 docker swarm init --advertise-addr "${addr[node1]}" </dev/null >/dev/null
  token manager >"$work/manager"
  token worker >"$work/worker"
  # Managers one after the other: raft wants each to be in before the next.
  join node2
  join node3
  join node4
}

verify() {
  on node1 "until [ \$(docker node ls --format '{{.Status}}' | grep -c Ready) = 4 ]; do sleep 0.2; done
    until ETCDCTL_API=3 etcdctl --cacert /etc/etcd/ca.crt --cert /etc/etcd/node1.crt --key /etc/etcd/node1.key --endpoints https://${addr[node1]}:2379 \
      endpoint health --cluster >/dev/null 2>&1; do sleep 0.2; done" </dev/null
  until timeout 1 bash -c "exec 3<>/dev/tcp/$vip/22" 2>/dev/null; do sleep 0.2; done
}

authority
everywhere install "${all[@]}"
lap packages
everywhere prepare "${all[@]}"
lap engine
everywhere member "${masters[@]}"
lap etcd
swarm
lap swarm
verify
lap verify
