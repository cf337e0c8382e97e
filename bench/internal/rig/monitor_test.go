package rig

import "testing"

func TestMonitorLinesTellScriptsFromClients(t *testing.T) {
	for _, c := range []struct {
		line, name string
		script     bool
	}{
		{`1339518083.107412 [0 127.0.0.1:60866] "PTTL" "leader"`, "pttl", false},
		{`1339518087.877697 [0 lua] "get" "leader"`, "get", true},
		{`1339518090.420270 [0 unix:/tmp/x.sock] "evalsha" "abc" "1"`, "evalsha", false},
	} {
		if name, script := monitored(c.line); name != c.name || script != c.script {
			t.Errorf("%s: got %q, %v", c.line, name, script)
		}
	}
}
