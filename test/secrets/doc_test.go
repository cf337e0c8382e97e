// Package secrets plants a secret in every place that may hold one, and looks for each of
// them in everything that real processes say: logs, pages, the API, metrics, commands,
// errors, Redis and the databases.
package secrets

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"baton/internal/testsupport"
)

func TestMain(m *testing.M) { testsupport.Main(m) }

// soon is generous: two cores may run everything at once.
const soon = 20 * time.Second

// program builds baton once.
var program = sync.OnceValues(func() (string, error) {
	dir, err := testsupport.SharedDir("secrets")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "baton")
	out, err := exec.Command("go", "build", "-buildvcs=false", "-o", path, "baton/cmd/baton").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build baton: %w\n%s", err, out)
	}
	return path, nil
})

func baton(t *testing.T) string {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

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
	cmd := exec.Command(baton(p.t), arguments...)
	cmd.Dir, cmd.Env = p.dir, append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.dir, "NO_COLOR=1"}, p.env...)
	return cmd
}

// says runs a command to its end, and returns all that it says. One that goes on is ended.
func (p *place) says(arguments ...string) string {
	p.t.Helper()
	said, _ := p.runs(arguments...)
	return said
}

// runs also reports whether the command ended well.
func (p *place) runs(arguments ...string) (string, bool) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), soon)
	defer cancel()
	cmd := p.command(arguments...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }() // how it ended is not what this is about
	select {
	case <-ended:
	case <-ctx.Done():
		_ = cmd.Process.Kill()
		<-ended
	}
	return said.String(), cmd.ProcessState.Success()
}
