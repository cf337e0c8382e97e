package hosts

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	lab "baton/internal/testsupport/hosts"
	"baton/internal/testsupport/walk"
)

// A newcomer who has three fresh hosts and does what the tutorial says, and nothing else,
// sees what it says.
func TestTutorialToTheLetter(t *testing.T) {
	l := lab.New(t)
	archives := read(t, filepath.Join(os.Getenv("BATON_LAB"), "archives.tar"))
	deb := read(t, packageFile(t, "BATON_DEB"))
	hosts := map[string]walk.Host{}
	var names string
	for _, h := range l.Hosts("store", "one", "two") {
		names += fmt.Sprintf("%s %s\n", h.Addr, h.Name)
		hosts[h.Name] = newcomer{h}
	}
	for _, name := range []string{"store", "one", "two"} {
		h := hosts[name].(newcomer).Host
		h.Write("/etc/hosts", "127.0.0.1 localhost\n"+names)
		// Packages that a mirror would have: there is no way out of the lab.
		h.Write("/root/archives.tar", archives)
		h.Shell("tar -C / -xf /root/archives.tar && rm /root/archives.tar && DEBIAN_FRONTEND=noninteractive apt-get install -y sudo curl")
		h.Write("/root/baton_0_amd64.deb", deb)
	}
	page := "docs/tutorial.md" // make test-systemd runs the tests in the repository's root
	if _, err := os.Stat(page); err != nil {
		page = filepath.Join("../..", page)
	}
	walk.Follow(t, page, hosts)
}

// newcomer types at a host.
type newcomer struct{ *lab.Host }

func (n newcomer) Exec(script string) (string, error) {
	r := n.Run("env", "DEBIAN_FRONTEND=noninteractive", "bash", "-euo", "pipefail", "-c", "cd ~; exec 2>&1; "+script)
	if r.Code != 0 {
		return r.Stdout + r.Stderr, fmt.Errorf("exit status %d", r.Code)
	}
	return r.Stdout + r.Stderr, nil
}
