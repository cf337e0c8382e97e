// Package packages looks into the packages that make packages has built.
package packages

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// built is the folder of the packages. Building them takes long where nothing is
// cached, so only make test-packages does.
func built(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("BATON_PACKAGES")
	if dir == "" {
		t.Skip("BATON_PACKAGES names no folder of packages: make test-packages")
	}
	return dir
}

func run(t *testing.T, program string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC")
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, &complaints)
	}
	return string(out)
}

// version is that of the packages, made of the one that they were built with.
func version(t *testing.T, of string) string {
	t.Helper()
	cmd := exec.Command("../../scripts/packages", "--version")
	cmd.Env = append(os.Environ(), "VERSION="+of)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("scripts/packages --version for %q: %v", of, err)
	}
	return strings.TrimSpace(string(out))
}

var formats = map[string][]string{"deb": {"_%s_amd64.deb", "_%s_arm64.deb"}, "rpm": {"-%s.x86_64.rpm", "-%s.aarch64.rpm"}}

func files(t *testing.T, dir, format string) []string {
	t.Helper()
	var paths []string
	for _, name := range formats[format] {
		path := filepath.Join(dir, "baton"+fmt.Sprintf(name, version(t, os.Getenv("BATON_VERSION"))))
		if _, err := os.Stat(path); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

var (
	debLine = regexp.MustCompile(`^(\S+) (\S+)/(\S+) +\d+ \S+ \S+ \.(/\S*)$`)
	rpmLine = regexp.MustCompile(`^(\S+) +\d+ (\S+) +(\S+) +\d+ \S+ +\d+ \S+ (/\S+)$`)
)

// contents is what a package puts where: mode, owner and group by path.
func contents(t *testing.T, format, path string) map[string]string {
	t.Helper()
	line, list := debLine, []string{"dpkg-deb", "-c"}
	if format == "rpm" {
		line, list = rpmLine, []string{"rpm", "-qlpv"}
	}
	text := run(t, list[0], list[1], path)
	has := map[string]string{}
	for l := range strings.Lines(text) {
		m := line.FindStringSubmatch(strings.TrimSpace(l))
		if m == nil {
			t.Fatalf("%s: %q is not understood", path, l)
		}
		has[strings.TrimSuffix(m[4], "/")] = m[1] + " " + m[2] + ":" + m[3]
	}
	return has
}

func TestThePackagesHaveWhatBelongsInThem(t *testing.T) {
	dir := built(t)
	const file = "-rw-r--r-- root:root"
	for format, wantGroup := range map[string]string{"deb": "root", "rpm": "baton"} { // dpkg unpacks before there is the group
		want := map[string]string{
			"/usr/bin/baton":                                  "-rwxr-xr-x root:root",
			"/etc/baton":                                      "drwxr-x--- root:" + wantGroup,
			"/etc/baton/baton.yaml":                           "-rw-r----- root:" + wantGroup,
			"/usr/lib/systemd/system/baton.service":           file,
			"/usr/lib/systemd/system/baton@.service":          file,
			"/usr/lib/sysusers.d/baton.conf":                  file,
			"/usr/share/baton/baton.example.yaml":             file,
			"/usr/share/baton/baton.schema.json":              file,
			"/usr/share/baton/command-jobs.conf":              file,
			"/usr/share/baton/command-users.conf":             file,
			"/usr/share/baton/prometheus/baton.rules.yml":     file,
			"/usr/share/baton/grafana/baton.json":             file,
			"/usr/share/bash-completion/completions/baton":    file,
			"/usr/share/fish/vendor_completions.d/baton.fish": file,
			"/usr/share/man/man1/baton.1.gz":                  file,
			"/usr/share/man/man1/baton-job-run.1.gz":          file,
			"/usr/share/doc/baton/docs/how-to/install.md":     file,
		}
		want[map[string]string{"deb": "/usr/share/zsh/vendor-completions/_baton", "rpm": "/usr/share/zsh/site-functions/_baton"}[format]] = file
		want[map[string]string{"deb": "/usr/share/doc/baton/copyright", "rpm": "/usr/share/licenses/baton/LICENSE"}[format]] = file
		for _, path := range files(t, dir, format) {
			has := contents(t, format, path)
			for name, mode := range want {
				if has[name] != mode {
					t.Errorf("%s: %s is %q, want %q", filepath.Base(path), name, has[name], mode)
				}
			}
			for _, name := range slices.Sorted(maps.Keys(has)) {
				if mode := has[name]; want[name] == "" && mode != file && !strings.HasPrefix(mode, "drwxr-xr-x root:root") {
					t.Errorf("%s: %s is %q", filepath.Base(path), name, mode)
				}
				if format == "rpm" && strings.HasPrefix(has[name], "d") && name != "/etc/baton" {
					t.Errorf("%s owns the directory %s, which is another package's, too", filepath.Base(path), name)
				}
			}
		}
	}
}

func TestAnUpgradeKeepsTheConfiguration(t *testing.T) {
	dir := built(t)
	for _, path := range files(t, dir, "deb") {
		if got := run(t, "dpkg-deb", "-I", path, "conffiles"); got != "/etc/baton/baton.yaml\n" {
			t.Errorf("%s: configuration files are %q", path, got)
		}
	}
	for _, path := range files(t, dir, "rpm") {
		// 1: configuration, 16: not replaced.
		if got := run(t, "rpm", "-qp", "--qf", "[%{FILENAMES} %{FILEFLAGS}\n]", path); !strings.Contains(got, "/etc/baton/baton.yaml 17\n") {
			t.Errorf("%s: the configuration is not config|noreplace:\n%s", path, got)
		}
	}
}

func TestTheBinaryIsOfItsPackagesVersionAndArchitecture(t *testing.T) {
	dir := built(t)
	here := strings.TrimSpace(run(t, "dpkg", "--print-architecture"))
	for _, path := range files(t, dir, "deb") {
		root := t.TempDir()
		run(t, "dpkg-deb", "-x", path, root)
		arch := strings.TrimSpace(run(t, "dpkg-deb", "-f", path, "Architecture"))
		if text := run(t, "go", "version", "-m", filepath.Join(root, "usr/bin/baton")); !strings.Contains(text, "GOARCH="+arch) || !strings.Contains(text, "CGO_ENABLED=0") {
			t.Errorf("%s: the binary is\n%s", path, text)
		}
		if arch == here {
			if text := run(t, filepath.Join(root, "usr/bin/baton"), "version"); !strings.Contains(text, strings.TrimPrefix(os.Getenv("BATON_VERSION"), "v")) {
				t.Errorf("%s: the binary says %q", path, text)
			}
		}
	}
}

// As dpkg and rpm order them, which want the same of these.
func TestVersionsAreInTheOrderOfTheCommits(t *testing.T) {
	built(t)              // only there is rpm to be expected
	const old = "0a1b2c3" // without a tag, of now
	var before string
	for _, describe := range []string{old, "v0.9.0", "v1.0.0-rc.1", "v1.0.0-rc.1-4-g0a1b2c3", "v1.0.0-rc.2", "v1.0.0", "v1.0.0-dirty", "v1.0.0-2-g0a1b2c3", "v1.0.0-10-g0a1b2c3", "v1.0.0-10-g0a1b2c3-dirty", "v1.0.1"} {
		now := version(t, describe)
		if before != "" {
			if err := exec.Command("dpkg", "--compare-versions", before, "lt", now).Run(); err != nil {
				t.Errorf("to dpkg %s does not come before %s (%s)", before, now, describe)
			}
			if got := run(t, "rpm", "--eval", fmt.Sprintf("%%{lua: print(rpm.vercmp(%q, %q))}", before, now)); got != "-1\n" {
				t.Errorf("to rpm %s does not come before %s (%s)", before, now, describe)
			}
		}
		before = now
	}
	if got := version(t, "1234567"); !regexp.MustCompile(`^0\.0\.0\+git\d{14}\.1234567$`).MatchString(got) {
		t.Errorf("a commit whose hash is all digits became version %q", got)
	}
	cmd := exec.Command("../../scripts/packages", "--version")
	cmd.Env = append(os.Environ(), "VERSION=not/a version")
	if out, err := cmd.CombinedOutput(); err == nil {
		t.Errorf("an illegal version became %q", out)
	}
}

func TestASecondBuildGivesTheSameBytes(t *testing.T) {
	first, second := built(t), t.TempDir()
	cmd := exec.Command("../../scripts/packages")
	cmd.Env = append(os.Environ(), "DIST="+second, "VERSION="+os.Getenv("BATON_VERSION"), "TZ=Asia/Shanghai", "LANG=C.UTF-8")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for format := range formats {
		for _, path := range files(t, first, format) {
			a, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(filepath.Join(second, filepath.Base(path)))
			if err != nil {
				t.Fatal(err)
			}
			if sha256.Sum256(a) != sha256.Sum256(b) {
				t.Errorf("%s differs from one build to the next", filepath.Base(path))
			}
		}
	}
}

// What Debian's own checker finds is right, or has its reason in the overrides.
func TestLintianFindsNothing(t *testing.T) {
	for _, path := range files(t, built(t), "deb") {
		run(t, "lintian", "--allow-root", "--fail-on", "error,warning", path)
	}
}

// The scripts run where there is neither bash nor systemd.
func TestMaintainerScriptsArePlainShell(t *testing.T) {
	scripts, err := filepath.Glob("../../deploy/packages/*/*")
	if err != nil || len(scripts) != 7 {
		t.Fatalf("found %v, %v; want three scripts for deb and four for rpm", scripts, err)
	}
	for _, path := range scripts {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(text, []byte("#!/bin/sh\n")) || !bytes.Contains(text, []byte("\nset -e\n")) {
			t.Errorf("%s does not begin as a script that stops at an error", path)
		}
		run(t, "/bin/sh", "-n", path)
	}
}
