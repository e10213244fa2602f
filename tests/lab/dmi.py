"""What a machine says of itself. Containers have no DMI: a folder is mounted over /sys/class that has everything of the real one, and
beside it what a test wants to be read there."""


def dmi(lab, node, **values):
    """Files of /sys/class/dmi/id, e.g. product_serial and product_uuid."""
    lab.sh(node, "test -d /run/real-sys || { mkdir /run/real-sys && mount --bind /sys /run/real-sys && mount -t tmpfs tmpfs /sys/class && "
                 "for d in /run/real-sys/class/*; do test ${d##*/} = dmi || ln -s $d /sys/class/; done && mkdir -p /sys/class/dmi/id; }")
    for name, value in values.items():
        lab.sh(node, "echo '%s' > /sys/class/dmi/id/%s" % (value, name))


def network_cards(lab, node, *macs):
    """The only cards that are seen on the node from now on. The network itself is as before."""
    lab.sh(node, "rm -rf /sys/class/net && mkdir /sys/class/net")
    for number, mac in enumerate(macs):
        lab.sh(node, "mkdir /sys/class/net/card{0} && cd /sys/class/net/card{0} && echo 1 > type && echo {1} > address".format(number, mac))


def new_host_key(lab, node):
    lab.sh(node, "rm /etc/ssh/ssh_host_*; ssh-keygen -A; systemctl restart ssh")
