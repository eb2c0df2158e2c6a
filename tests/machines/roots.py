"""Roots as other distributions have them, of busybox alone: where programs and homes are, and which of these names are links."""
import os
import shutil
import subprocess

STORE = "/nix/store/0a-busybox/bin"


def _make(root, dirs, links, programs, pinfold, parts, uid):
    for name in ("etc", "proc", "sys", "dev", "run", "old", "var/tmp", *dirs, programs, os.path.dirname(pinfold)):
        os.makedirs(os.path.join(root, name), exist_ok=True)
    for name, target in links.items():
        os.symlink(target, os.path.join(root, name))
    busybox = shutil.copy(shutil.which("busybox"), os.path.join(root, programs, "busybox"))
    for applet in subprocess.run([busybox, "--list"], check=True, capture_output=True, text=True).stdout.split():
        if applet != "busybox":
            os.symlink("busybox", os.path.join(root, programs, applet))
    for part in os.listdir(parts):
        shutil.copy(os.path.join(parts, part), os.path.join(root, os.path.dirname(pinfold)))
    for name, text in {"passwd": f"root:x:0:0:root:/root:/bin/sh\nu:x:{uid}:{uid}::/home/u:/bin/sh\n", "group": f"root:x:0:\nu:x:{uid}:\n", "hosts": "127.0.0.1 localhost\n",
                       "resolv.conf": "nameserver 127.0.0.1\n"}.items():
        with open(os.path.join(root, "etc", name), "w", encoding="ascii") as file:
            file.write(text)


def alpine(root, parts, uid):
    """No /usr/bin to speak of, no shell but busybox's, /bin and /lib directories of their own."""
    _make(root, ["lib", "sbin", "usr/bin", "usr/lib", "tmp", "root", "home"], {}, "bin", "usr/local/bin/pinfold", parts, uid)
    return "/usr/local/bin:/usr/bin:/bin", "/home/u"


def silverblue(root, parts, uid):
    """Of the top only /usr, /etc and /var are no links: homes, root's too, and /usr/local are in /var."""
    _make(root, ["usr/lib", "var/home", "var/roothome", "var/opt", "var/mnt", "sysroot/tmp", "sysroot/ostree"],
          {"bin": "usr/bin", "sbin": "usr/bin", "lib": "usr/lib", "usr/local": "../var/usrlocal", "home": "var/home", "root": "var/roothome", "opt": "var/opt", "mnt": "var/mnt",
           "tmp": "sysroot/tmp", "ostree": "sysroot/ostree"}, "usr/bin", "var/usrlocal/bin/pinfold", parts, uid)
    return "/usr/local/bin:/usr/bin", "/home/u"


def nixos(root, parts, uid):
    """Programs in /nix/store, found by links in /run and in the home; /etc is links."""
    _make(root, ["bin", "usr/bin", "nix/store/1a-etc", "nix/store/2a-env/bin", "tmp", "root", "home"], {"bin/sh": STORE + "/sh", "usr/bin/env": STORE + "/env", "etc/static": "/nix/store/1a-etc"},
          STORE[1:], "nix/store/3a-pinfold/bin/pinfold", parts, uid)
    for name in ("group", "hosts"):
        shutil.move(os.path.join(root, "etc", name), os.path.join(root, "nix/store/1a-etc"))
        os.symlink("/etc/static/" + name, os.path.join(root, "etc", name))
    os.symlink("/nix/store/3a-pinfold/bin/pinfold", os.path.join(root, "nix/store/2a-env/bin/pinfold"))
    return "/home/u/.nix-profile/bin:/run/current-system/sw/bin", "/home/u"


ALL = (alpine, silverblue, nixos)

# By pivot_root, because in a chroot the kernel makes no user namespaces.
ENTER = """root=$1 search=$2 home=$3 user=$4 script=$5 store=$6
set -e
mount --bind "$root" "$root"
cd "$root"
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs -o mode=755 tmpfs run
pivot_root . old
cd /
export PATH="$search:$store:/bin" HOME="$home" P=pinfold
if [ -d /nix ]; then
    "$store/busybox" ln -s "$store/.." /nix/store/4a-sw
    "$store/busybox" mkdir /nix/store/5a-system && "$store/busybox" ln -s /nix/store/4a-sw /nix/store/5a-system/sw
    "$store/busybox" ln -s /nix/store/5a-system /run/current-system
    "$store/busybox" mkdir -p "$home" && "$store/busybox" ln -s /nix/store/2a-env "$home/.nix-profile"
fi
busybox umount -l /old
chmod 1777 /tmp/.
mkdir -p /root/project "$home/project"
chmod 700 /root/.
chown -R u:u "$home/."
if [ "$user" = root ]; then HOME=/root; cd /root/project; exec sh -c "$script"; fi
exec busybox su u -s /bin/sh -c "cd $home/project && export PATH=$search HOME=$home USER=u && $script"
"""
