"""The engines: what each needs to be run here, and what it would leave behind. Started by the suite itself, ended by it."""
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import pf  # noqa: E402

KIT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "docker", "kit.sh")
IMAGE = "kit/busybox:1"


class Engine:
    """One that shows the host's files, by a program of its own or by none."""
    image = False
    slow = False  # a start takes long: what differs by nothing but the user runs as one user

    def __init__(self, name, program=None):
        self.name, self.program = name, program

    def ready(self, users):
        """Starts what is needed; the reason why it cannot be measured, or nothing."""
        if self.name == "firejail" and shutil.which("firejail") and not pf.firejail_runs():
            return "firejail makes no sandbox in a container"
        return f"{self.program} is not installed" if self.program and not shutil.which(self.program) else ""

    def flags(self):
        return ["--engine", self.name]

    def env(self, user):
        del user
        return {}

    def kept(self, scene):
        """What it has not removed."""
        del scene
        return ""

    def close(self):
        pass


class Container(Engine):
    """docker or podman, with a storage of the suite's own; images are made here."""
    image = slow = True

    def __init__(self, name):
        super().__init__(name, name)
        self.envs, self.helpers, self.runs = {}, [], {}

    def shell(self, user, directory, script):
        """A shell with the kit that stays until close(); the variables that it exports. It ends when its stdin does."""
        child = subprocess.Popen(["bash", "-c", f". {KIT}; kit_begin {directory}; {script} || exit 1; env | grep -e ^DOCKER_HOST -e ^CONTAINERS_ -e ^PATH; "
                                  "echo READY; cat >/dev/null; kit_end"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=open(directory + ".log", "wb"), env=pf.environment(user, directory, **self.places(user)), start_new_session=True, **user.popen())
        self.helpers.append(child)
        found = {}
        for line in child.stdout:
            if line == b"READY\n":
                return found
            name, _, value = line.decode().rstrip("\n").partition("=")
            found[name] = value
        return None

    def places(self, user):
        if user.label not in self.runs:  # short: podman's own tidying up refuses a long one
            self.runs[user.label] = tempfile.mkdtemp(prefix="pfc.", dir="/tmp")
            user.own(self.runs[user.label])
        place = self.runs[user.label]
        return {"XDG_RUNTIME_DIR": place, "XDG_DATA_HOME": place + "/data"}  # podman's storage without root

    def ready(self, users):
        base = os.path.join(pf.SCRATCH, self.name)
        for user in users if self.name == "podman" else users[:1]:
            directory = f"{base}-{user.label}"
            os.makedirs(directory)
            user.own(directory)
            os.chmod(directory, 0o755)
            if self.name == "podman":
                script = f"kit_podman {directory}/podman && kit_images podman"
            else:
                if user.uid != 0:
                    return "only root can start docker's daemon"
                import grp
                group = grp.getgrgid(users[-1].gid).gr_name
                script = f"export KIT_DOCKER_GROUP={group}; kit_docker --experimental=false && kit_images docker && chmod 755 {directory}/docker"
            found = self.shell(user, directory, script)
            if found is None:
                with open(directory + ".log", encoding="utf-8", errors="replace") as log:
                    return "BROKEN: " + log.read()[-2000:]
            if self.name == "docker":
                self.envs = {u.uid: found for u in users}
            else:
                self.envs[user.uid] = found
        return ""

    def flags(self):
        return ["--engine", self.name, "--image", IMAGE]

    def env(self, user):
        return {**self.envs[user.uid], **self.places(user)}

    def kept(self, scene):
        env = pf.environment(scene.user, scene.home, **self.env(scene.user))
        for _ in range(600):  # the daemon removes what has ended by and by
            done = pf.run([self.name, "ps", "-a"], user=scene.user, env=env, cwd=scene.path)
            if len(done.out.splitlines()) < 2:
                return ""
            time.sleep(0.1)
        return done.text()

    def close(self):
        for child in self.helpers:
            child.stdin.close()
            try:
                child.wait(90)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        for place in self.runs.values():
            subprocess.run(["umount", "-lq", place + "/containers/overlay"], check=False, stderr=subprocess.DEVNULL)
            shutil.rmtree(place, ignore_errors=True)


class Machine(Engine):
    """A machine of tests/vm/kit.sh's kernel; without the kit of one that is installed."""
    slow = True
    kernel = ""

    def ready(self, users):
        if not shutil.which("qemu-system-" + os.uname().machine):
            return "qemu is not installed"
        kit = os.path.join(os.environ.get("PINFOLD_HOST_BUILD", ""), "vm-kit", "root")
        found = sorted(glob.glob(kit + "/boot/vmlinuz-*"))
        if not found and not glob.glob("/boot/vmlinuz-*"):
            return "there is no kernel for a machine"
        if found:  # where every user can read it
            copy = os.path.join(pf.SCRATCH, "vm-kit")
            shutil.copytree(kit, copy, symlinks=True)
            subprocess.run(["chmod", "-R", "go+rX", copy], check=True)
            self.kernel = os.path.join(copy, "boot", os.path.basename(found[-1]))
        for user in users:
            with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as boot:
                text = boot.read(36)
            place = self.state(user) + "/pinfold/vm"
            os.makedirs(place, 0o700)
            with open(place + "/no-kvm", "w", encoding="ascii") as mark:  # a nested KVM may hang, which is not what is measured
                mark.write(text)
            user.own(self.state(user))
        return ""

    @staticmethod
    def state(user):
        return os.path.join(pf.SCRATCH, "vm-state-" + user.label)

    def flags(self):
        return ["--engine", self.name, *(["--vm-kernel", self.kernel] if self.kernel else [])]

    def env(self, user):
        return {"XDG_STATE_HOME": self.state(user)}


def all_engines():
    return [Engine("native"), Engine("bwrap", "bwrap"), Engine("firejail", "firejail"), Engine("nsjail", "nsjail"), Container("docker"), Container("podman"), Machine("vm")]
