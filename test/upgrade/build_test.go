package upgrade

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"baton/internal/testsupport"
)

// before is a commit whose program lacks the newest migrations of baton's tables, and the rule that a job must ask before it changes the
// rows of an existing table.
const before = "9c158897898344e1922f5efeda072c5b59871822"

// buildOld returns the path of the program of an earlier commit. A shallow clone fetches this commit. If that is impossible, the test is
// skipped. In a complete clone the test fails without the commit.
func buildOld(t *testing.T) string {
	t.Helper()
	program, err := old()
	switch {
	case errors.Is(err, errShallow):
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
	return program
}

var errShallow = errors.New("this clone is shallow, and lacks the source of the earlier program: run git fetch --unshallow")

// oldTree returns the source of the earlier program as a tar archive.
func oldTree(root string) ([]byte, error) {
	git := func(args ...string) ([]byte, error) {
		return run(root, nil, append([]string{"git", "-c", "safe.directory=*"}, args...)...)
	}
	archive := func() ([]byte, error) { return git("archive", before, "cmd", "configs", "internal", "pkg") }
	tree, err := archive()
	if err == nil {
		return tree, nil
	}
	if shallow, _ := git("rev-parse", "--is-shallow-repository"); string(bytes.TrimSpace(shallow)) != "true" {
		return nil, fmt.Errorf("the earlier program cannot be built without commit %s: %w", before, err)
	}
	if _, err := git("fetch", "--quiet", "--depth=1", "origin", before); err != nil {
		return nil, fmt.Errorf("%w (%w)", errShallow, err)
	}
	return archive()
}

var old = sync.OnceValues(func() (string, error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return "", err
	}
	tree, err := oldTree(root)
	if err != nil {
		return "", err
	}
	dir, err := testsupport.SharedDir("earlier")
	if err != nil {
		return "", err
	}
	if _, err := run(dir, tree, "tar", "-x"); err != nil {
		return "", err
	}
	for _, name := range []string{"go.mod", "go.sum"} { // the modules of the present program, so that go build downloads nothing else
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return "", err
		}
	}
	_, err = run(dir, nil, "go", "build", "-buildvcs=false", "-trimpath", "-o", "baton", "./cmd/baton")
	return filepath.Join(dir, "baton"), err
})

// run runs a command in a directory and returns its output.
func run(dir string, input []byte, argv ...string) ([]byte, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	var errs bytes.Buffer
	cmd.Dir, cmd.Stdin, cmd.Stderr, cmd.Env = dir, bytes.NewReader(input), &errs, append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%v in %s: %w\n%s", argv, dir, err, &errs)
	}
	return out, nil
}
