package release

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// asked is the version to build. It takes many minutes where nothing is cached, so only
// make test-release does.
func asked(t *testing.T) string {
	t.Helper()
	version := os.Getenv("BATON_RELEASE")
	if version == "" {
		t.Skip("BATON_RELEASE names no version: make test-release")
	}
	return version
}

// Whoever has the commit can build the release again, and compare.
func TestTwoFoldersBuildTheSameRelease(t *testing.T) {
	version := asked(t)
	first, second := build(t, version), build(t, version)
	files, err := os.ReadDir(first)
	if err != nil || len(files) < 8 {
		t.Fatalf("%v: the release has only %v", err, files)
	}
	for _, f := range files {
		a, err := os.ReadFile(filepath.Join(first, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(second, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a, b) {
			t.Errorf("%s differs from one folder to the other", f.Name())
		}
	}
	checkRelease(t, first, version)
}

// build makes the release in a clone of its own.
func build(t *testing.T, version string) string {
	t.Helper()
	clone, dist := filepath.Join(t.TempDir(), "clone"), t.TempDir()
	run(t, "", nil, "git", "clone", "--quiet", "../..", clone)
	run(t, clone, []string{"DIST=" + dist, "VERSION=" + version}, "scripts/release")
	return dist
}

func checkRelease(t *testing.T, dist, version string) {
	t.Helper()
	run(t, dist, nil, "sha256sum", "--check", "--strict", "SHA256SUMS")
	commit := strings.TrimSpace(run(t, "", nil, "git", "rev-parse", "HEAD"))[:12]
	name := "baton_" + strings.TrimPrefix(version, "v") + "_linux_" + runtime.GOARCH
	root := t.TempDir()
	run(t, "", nil, "tar", "-C", root, "-xzf", filepath.Join(dist, name+".tar.gz"))
	program := filepath.Join(root, name, "baton")
	if got := run(t, "", nil, program, "version"); !strings.HasPrefix(got, "baton "+version+" (commit "+commit+",") {
		t.Errorf("the program says %q", got)
	}

	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dist, name+".cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	var bom struct {
		BomFormat  string
		Components []struct{ Name, Version, PURL string }
	}
	if err := json.Unmarshal(text, &bom); err != nil || bom.BomFormat != "CycloneDX" {
		t.Fatalf("%v: %s", err, text)
	}
	listed := map[string]string{}
	for _, c := range bom.Components {
		listed[c.Name] = c.Version
	}
	if len(listed) != len(info.Deps)+1 || listed["std"] != info.GoVersion {
		t.Errorf("the list has %d components, the program %d and Go's own, %s", len(listed), len(info.Deps), listed["std"])
	}
	for _, m := range info.Deps {
		if listed[m.Path] != m.Version {
			t.Errorf("%s is %q in the list, %q in the program", m.Path, listed[m.Path], m.Version)
		}
	}
}
