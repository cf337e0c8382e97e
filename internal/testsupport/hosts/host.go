package hosts

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Host is one small machine with systemd as its PID 1.
type Host struct {
	Name string
	Addr string // address in the network of the lab

	lab    *Lab
	at     *machine
	disk   string
	cgroup string
	init   *exec.Cmd     // nil if the host is off
	ended  chan struct{} // closed after the wait for init has returned
}

// Host boots a host with that name. At the test's end the host is switched off and removed.
func (l *Lab) Host(name string) *Host {
	l.t.Helper()
	h := l.hostOff(name)
	h.Boot()
	return h
}

// Hosts boots several hosts in parallel.
func (l *Lab) Hosts(names ...string) []*Host {
	l.t.Helper()
	var all []*Host
	for _, name := range names {
		h := l.hostOff(name)
		h.powerOn()
		all = append(all, h)
	}
	for _, h := range all {
		h.awaitBooted()
	}
	return all
}

func (l *Lab) hostOff(name string) *Host {
	l.t.Helper()
	at := l.machine(name)
	h := &Host{Name: name, Addr: at.addr.String(), lab: l, at: at, disk: l.path("disk-" + name), cgroup: filepath.Join(ground.Cgroup, name)}
	if err := os.Mkdir(h.disk, 0o755); err != nil {
		l.t.Fatal(err)
	}
	l.hosts = append(l.hosts, h)
	l.t.Cleanup(func() {
		if h.init == nil {
			return
		}
		if l.t.Failed() {
			h.Thaw()
			l.t.Logf("journal of host %s ends with:\n%s", name, h.Run("journalctl", "--no-pager", "-n", "60", "-o", "short-precise").Stdout)
		}
		h.PowerCut()
	})
	return h
}

// Boot switches the host on, and returns when systemd has started all units.
func (h *Host) Boot() {
	h.lab.t.Helper()
	h.powerOn()
	h.awaitBooted()
}

func (h *Host) powerOn() {
	t := h.lab.t
	t.Helper()
	if h.init != nil {
		t.Fatalf("host %s is on already", h.Name)
	}
	if err := os.Mkdir(h.cgroup, 0o755); err != nil {
		t.Fatal(err)
	}
	group, err := os.Open(h.cgroup)
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	console, err := os.OpenFile(h.console(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer console.Close()
	const inheritedAs = 3 // the file descriptor of the first of ExtraFiles
	spec, err := json.Marshal(hostSpec{Name: h.Name, Base: ground.Root, Disk: h.disk, NetNS: inheritedAs})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{envStage + "=" + stageInit, envSpec + "=" + string(spec)}
	cmd.Stdout, cmd.Stderr = console, console
	cmd.ExtraFiles = []*os.File{h.at.netns.file}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setsid: true, UseCgroupFD: true, CgroupFD: int(group.Fd()),
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("switch on host %s: %v", h.Name, err)
	}
	h.init, h.ended = cmd, make(chan struct{})
	go func() { _ = cmd.Wait(); close(h.ended) }() // the host's console shows how init has ended
}

func (h *Host) awaitBooted() {
	t := h.lab.t
	t.Helper()
	await(t, "systemd of host "+h.Name, func() bool {
		if h.off() {
			console, _ := os.ReadFile(h.console())
			t.Fatalf("host %s did not boot:\n%s", h.Name, console)
		}
		_, err := os.Stat(h.outer("/run/systemd/private"))
		return err == nil
	})
	if r := h.Run("systemctl", "is-system-running", "--wait"); r.Code != 0 {
		t.Fatalf("host %s came up as %q: %s", h.Name, strings.TrimSpace(r.Stdout), h.Run("systemctl", "--failed", "--no-legend", "--plain").Stdout)
	}
}

func (h *Host) off() bool {
	select {
	case <-h.ended:
		return true
	default:
		return false
	}
}

// PowerCut ends the host immediately. When the host boots again, the files that it wrote still exist.
func (h *Host) PowerCut() {
	t := h.lab.t
	t.Helper()
	if h.init == nil {
		t.Fatalf("host %s is off already", h.Name)
	}
	// When PID 1 of a namespace ends, the kernel ends every process in the namespace, also frozen ones.
	if err := h.init.Process.Kill(); err != nil && !h.off() {
		t.Fatal(err)
	}
	h.gone()
}

// Shutdown switches the host off in order, as systemctl poweroff does.
func (h *Host) Shutdown() {
	h.lab.t.Helper()
	h.Run("systemctl", "poweroff") // ignores an error, because the connection of the command may end first
	h.gone()
}

func (h *Host) gone() {
	h.lab.t.Helper()
	await(h.lab.t, "host "+h.Name+" to be off", h.off)
	h.init = nil
	if err := removeGroup(h.cgroup); err != nil {
		h.lab.t.Error(err)
	}
}

// Freeze stops every process of the host, like a paused virtual machine. Connections stay open and get no answers.
func (h *Host) Freeze() { h.lab.t.Helper(); h.freeze("1") }

// Thaw lets a frozen host continue.
func (h *Host) Thaw() { h.lab.t.Helper(); h.freeze("0") }

func (h *Host) freeze(value string) {
	t := h.lab.t
	t.Helper()
	if err := os.WriteFile(filepath.Join(h.cgroup, "cgroup.freeze"), []byte(value), 0); err != nil {
		t.Fatal(err)
	}
	await(t, "host "+h.Name+" to freeze or thaw", func() bool {
		events, err := os.ReadFile(filepath.Join(h.cgroup, "cgroup.events"))
		return err != nil || strings.Contains(string(events), "frozen "+value)
	})
}

// Signal sends a signal to a process of the host. pid is the process id as the host sees it. Signal takes only microseconds, because it
// starts no process.
func (h *Host) Signal(pid int, sig syscall.Signal) {
	t := h.lab.t
	t.Helper()
	outer, err := h.outerPid(pid)
	if err == nil {
		err = syscall.Kill(outer, sig)
	}
	if err != nil {
		t.Fatalf("send %v to process %d of host %s: %v", sig, pid, h.Name, err)
	}
}

// outerPid returns the process id of a host's process in the namespace of the tests.
func (h *Host) outerPid(pid int) (int, error) {
	own, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", h.init.Process.Pid))
	if err != nil {
		return 0, err
	}
	names, _ := filepath.Glob("/proc/[0-9]*/status") // the pattern is a constant, so Glob returns no error
	for _, name := range names {
		dir := filepath.Dir(name)
		if ns, err := os.Readlink(filepath.Join(dir, "ns/pid")); err != nil || ns != own {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			numbers, ok := strings.CutPrefix(line, "NSpid:")
			if fields := strings.Fields(numbers); ok && len(fields) > 0 && fields[len(fields)-1] == strconv.Itoa(pid) {
				return strconv.Atoi(filepath.Base(dir))
			}
		}
	}
	return 0, fmt.Errorf("there is no process %d", pid)
}

// outer returns the path at which the tests reach a path of the host. If the path contains an absolute symbolic link, outer leads to a
// wrong file, because the link is resolved outside of the host.
func (h *Host) outer(path string) string {
	return filepath.Join("/proc", strconv.Itoa(h.init.Process.Pid), "root") + "/" + path
}

func (h *Host) console() string { return h.lab.path("console-" + h.Name) }
