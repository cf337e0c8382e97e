package main

import (
	"slices"
	"testing"
)

// The score of the sandbox has room for one directive more or less, and of what is no
// sandbox it says nothing. Each of these stands for something that goes wrong without it.
func TestTheUnitsLackNothingThatTheScoreDoesNotShow(t *testing.T) {
	want := map[string]string{
		// A start at boot that waits for the network, and an enabled unit that starts at all.
		"Wants": "network-online.target", "After": "network-online.target", "WantedBy": "multi-user.target",
		// A child must not tell systemd that the daemon is ready, or alive.
		"NotifyAccess": "main",
		// A drain of the longest configuration that is usual fits; a hung daemon is gone soon.
		"TimeoutStopSec": "30s", "TimeoutAbortSec": "5s", "WatchdogSec": "60s",
		// What a job, or whoever has got the better of the daemon, could do without them.
		"AmbientCapabilities": "", "CapabilityBoundingSet": "", "DevicePolicy": "closed", "KeyringMode": "private", "LockPersonality": "yes",
		"MemoryDenyWriteExecute": "yes", "NoNewPrivileges": "yes", "PrivateDevices": "yes", "PrivateMounts": "yes", "PrivateTmp": "yes", "PrivateUsers": "yes",
		"ProcSubset": "pid", "ProtectClock": "yes", "ProtectControlGroups": "yes", "ProtectHome": "yes", "ProtectHostname": "yes", "ProtectKernelLogs": "yes",
		"ProtectKernelModules": "yes", "ProtectKernelTunables": "yes", "ProtectProc": "invisible", "ProtectSystem": "strict", "RemoveIPC": "yes",
		"RestrictNamespaces": "yes", "RestrictRealtime": "yes", "RestrictSUIDSGID": "yes", "RestrictAddressFamilies": "AF_INET AF_INET6 AF_UNIX",
		"SystemCallArchitectures": "native",
		// A system call that is refused is an error of that program, not its death.
		"SystemCallErrorNumber": "EPERM",
		// Files that the daemon writes, epochs and leases, are its own.
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
