// Package hosts boots small Linux hosts for tests. Each host runs systemd as PID 1 in namespaces, on an overlay of one root file system. A
// test can cut or delay every direction of every link in the network, and can make it lose packets.
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
// Main runs the tests in a second process, which is PID 1 of its own namespaces. However the second process ends, the kernel then ends
// every process of every host, and removes the mounts, networks and disks, because they are in memory. The first process only waits.
// Afterwards the first process removes a directory and a control group; if it cannot remove them, the next run removes them. So a panic, a
// Ctrl-C and a SIGKILL leave nothing on the machine.
//
//	test binary ── waits
//	└─ the same binary, PID 1 of its own namespaces: tests, switch, servers
//	   ├─ systemd, PID 1 of host a
//	   └─ systemd, PID 1 of host b
//
// The second process is also the network switch: every machine's eth0 is a TAP device, and the switch reads the other end of it. The
// package does not use netem, because many kernels do not contain it. The tests also have a port in the switch.
//
// It needs root, a control group hierarchy of version 2 (also beside version 1), and a root file system in $BATON_LAB/base, which
// scripts/test-rootfs makes.
package hosts
