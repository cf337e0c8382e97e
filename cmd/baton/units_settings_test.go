package main

import (
	"slices"
	"testing"
)

// TestTheUnitsLackNothingThatTheScoreDoesNotShow checks directives of the units, because the score of the sandbox does not show a single
// missing directive, or a directive outside of the sandbox. Each of these directives prevents a specific problem.
func TestTheUnitsLackNothingThatTheScoreDoesNotShow(t *testing.T) {
	want := map[string]string{
		// The daemon must start at boot and wait for the network.
		"Wants": "network-online.target", "After": "network-online.target", "WantedBy": "multi-user.target",
		// A child must not tell systemd that the daemon is ready or alive.
		"NotifyAccess": "main",
		// The drain of a usual configuration must fit into the time, and a daemon that hangs must be killed soon.
		"TimeoutStopSec": "30s", "TimeoutAbortSec": "5s", "WatchdogSec": "60s",
		// These directives limit the actions of a job, or of an attacker who controls the daemon.
		"AmbientCapabilities": "", "CapabilityBoundingSet": "", "DevicePolicy": "closed", "KeyringMode": "private", "LockPersonality": "yes",
		"MemoryDenyWriteExecute": "yes", "NoNewPrivileges": "yes", "PrivateDevices": "yes", "PrivateMounts": "yes", "PrivateTmp": "yes", "PrivateUsers": "yes",
		"ProcSubset": "pid", "ProtectClock": "yes", "ProtectControlGroups": "yes", "ProtectHome": "yes", "ProtectHostname": "yes", "ProtectKernelLogs": "yes",
		"ProtectKernelModules": "yes", "ProtectKernelTunables": "yes", "ProtectProc": "invisible", "ProtectSystem": "strict", "RemoveIPC": "yes",
		"RestrictNamespaces": "yes", "RestrictRealtime": "yes", "RestrictSUIDSGID": "yes", "RestrictAddressFamilies": "AF_INET AF_INET6 AF_UNIX",
		"SystemCallArchitectures": "native",
		// A forbidden system call must result in an error of the program instead of its death.
		"SystemCallErrorNumber": "EPERM",
		// Only the daemon may read and write the files that it writes, such as epochs and leases.
		"UMask": "0077",
	}
	for _, name := range []string{"baton.service", "baton@.service"} {
		unit := directives(t, name)
		for directive, value := range want {
			if !slices.Equal(unit[directive], []string{value}) {
				t.Errorf("%s: %s=%q, want %q", name, directive, unit[directive], value)
			}
		}
		if calls := []string{"@system-service", "~@privileged @resources"}; !slices.Equal(unit["SystemCallFilter"], calls) {
			t.Errorf("%s: SystemCallFilter=%q, want %q", name, unit["SystemCallFilter"], calls)
		}
	}
}
