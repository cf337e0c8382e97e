// Package secrets plants a secret in every place that may hold one, and looks for each of
// them in everything that real processes say: logs, pages, the API, metrics, commands,
// Redis and the databases. What the errors of commands say is tested in cmd/baton.
package secrets

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"baton/internal/testsupport"
	"baton/internal/testsupport/child"
	"baton/internal/testsupport/cluster"
)

func TestMain(m *testing.M) { testsupport.Main(m) }

// soon is generous: two cores may run everything at once.
const soon = time.Minute

// place is a directory with files of the test's.
type place struct {
	t   *testing.T
	dir string
	env []string
}

func (p *place) file(name, text string) string {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return path
}

// command is baton with these arguments, in the place.
func (p *place) command(arguments ...string) *exec.Cmd {
	p.t.Helper()
	cmd := exec.Command(cluster.Build(p.t), arguments...)
	cmd.Dir, cmd.Env = p.dir, append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.dir, "NO_COLOR=1"}, p.env...)
	return cmd
}

// says runs a command to its end, and returns all that it says. One that goes on is ended.
func (p *place) says(arguments ...string) string {
	p.t.Helper()
	var said bytes.Buffer
	cmd := p.command(arguments...)
	cmd.Stdout, cmd.Stderr = &said, &said
	process, err := child.Start(cmd)
	if err != nil {
		p.t.Fatal(err)
	}
	if !process.Wait(soon) {
		_ = process.Kill() // how it ends is not what this is about
	}
	return said.String()
}
