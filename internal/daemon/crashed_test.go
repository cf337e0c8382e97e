package daemon

import (
	"slices"
	"testing"
)

// A group that is not a service's holds processes that are not ours: killing them
// must not depend on an environment variable alone.
func TestOnlyAServicesOwnControlGroupIsKilled(t *testing.T) {
	cases := []struct {
		name, text string
		want       []string
	}{
		{"unified", "0::/system.slice/baton.service\n", []string{"/system.slice/baton.service"}},
		{"a user's service", "0::/user.slice/user-1000.slice/user@1000.service/app.slice/baton.service\n",
			[]string{"/user.slice/user-1000.slice/user@1000.service/app.slice/baton.service"}},
		{"hybrid", "12:cpu:/\n1:name=systemd:/system.slice/baton.service\n0::/system.slice/baton.service\n",
			[]string{"/system.slice/baton.service", "/system.slice/baton.service"}},
		{"the root group", "0::/\n", nil},
		{"the root groups of a container", "9:name=systemd:/\n8:pids:/\n0::/\n", nil},
		{"a session", "0::/user.slice/user-1000.slice/session-3.scope\n", nil},
		{"a terminal of a user's service manager", "0::/user.slice/user-1000.slice/user@1000.service/app.slice/terminal.scope\n", nil},
		{"another controller's group", "4:memory:/x.service\n", nil},
		{"nothing", "", nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := serviceGroups(c.text)
			if !slices.Equal(got, c.want) || (err == nil) != (c.want != nil) {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
		})
	}
}
