// Package hosts boots small Linux hosts for tests: systemd as PID 1 in namespaces,
// over an overlay of one root file system, on a network whose every link can be cut,
// delayed and made lossy, each way by itself.
//
//	func TestMain(m *testing.M) { hosts.Main(m) }
//
//	lab := hosts.New(t)
//	a, b := lab.Host("a"), lab.Host("b")   // booted; removed at the test's end
//	redis := lab.Redis("redis")            // a server on a machine of its own
//	a.Must("systemctl", "start", "baton")
//	lab.Net.Block("a", "redis")
//	a.PowerCut(); a.Boot()                 // the disk stays
//
// # What holds it together
//
// Main runs the tests in a second process, which is PID 1 of namespaces of its own.
// When that one ends, however it ends, the kernel ends every process of every host
// and takes mounts, networks and disks (which are in memory) with it. The first
// process only waits; it removes a directory and a control group afterwards, or the
// next run does. So a panic, a Ctrl-C and a SIGKILL leave nothing in the machine.
//
//	test binary ── waits
//	└─ the same binary, PID 1 of its own namespaces: tests, switch, servers
//	   ├─ systemd, PID 1 of host a
//	   └─ systemd, PID 1 of host b
//
// The switch is this process: every machine's eth0 is a TAP device whose other end is
// read here, for many kernels have no netem. The tests have a port in it, too.
//
// It takes root, a control group hierarchy of version 2 (beside version 1 will do) and
// a root file system in $BATON_LAB/base, which scripts/test-rootfs makes.
package hosts
