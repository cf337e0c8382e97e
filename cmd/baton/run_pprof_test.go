package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"baton/cmd/baton/internal/cmdline"
)

// TestADaemonServesItsProfiles checks that a running daemon serves profiles on loopback if the flag is set. Programs on this host can read
// them but web pages cannot, and they do not contain the command line.
func TestADaemonServesItsProfiles(t *testing.T) {
	if args := os.Getenv(asBaton); args != "" {
		os.Args = append([]string{"baton"}, strings.Fields(args)...)
		main()
	}
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), "RUNTIME_DIRECTORY="+dir, "STATE_DIRECTORY="+dir,
		asBaton+"=run --redis redis://127.0.0.1:1/0 --http off --log-format json --pprof 127.0.0.1:0")
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
	var line struct{ Message, Address string }
	for lines := bufio.NewScanner(log); line.Message != "profiles are served" && lines.Scan(); {
		_ = json.Unmarshal(lines.Bytes(), &line)
	}
	go func() { _, _ = io.Copy(io.Discard, log) }()
	ask := func(path string, change func(*http.Request)) (int, string) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+line.Address+"/debug/pprof/"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if change != nil {
			change(r)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(body)
	}
	for _, path := range []string{"profile?seconds=1", "heap", "trace?seconds=0.1"} {
		if status, body := ask(path, nil); status != http.StatusOK || len(body) < 100 {
			t.Errorf("%s: status %d, %d bytes", path, status, len(body))
		}
	}
	if _, body := ask("goroutine?debug=1", nil); !strings.Contains(body, "baton/internal/daemon.Run") {
		t.Errorf("the goroutines are not those of a daemon:\n%.500s", body)
	}
	if status, body := ask("cmdline", nil); status != http.StatusNotFound || strings.Contains(body, "redis://") {
		t.Errorf("cmdline: status %d, %s", status, body)
	}
	for name, change := range map[string]func(*http.Request){
		"by another name": func(r *http.Request) { r.Host = "evil.example:80" },
		"of a web page":   func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
	} {
		if status, _ := ask("heap", change); status != http.StatusForbidden {
			t.Errorf("%s: status %d", name, status)
		}
	}
}

func TestProfilesAreForLoopbackAlone(t *testing.T) {
	for _, address := range []string{"0.0.0.0:6060", ":6060", "[::]:6060", "192.0.2.1:6060", "example.org:6060", "6060", "127.0.0.1"} {
		got := newCLI(t).run("run", "--redis", "redis://127.0.0.1:1/0", "--http", "off", "--pprof", address)
		if got.code != cmdline.ExitUsage || !strings.HasPrefix(got.stderr, `baton: --pprof: "`+address+`": write a port on loopback, such as`) {
			t.Errorf("%s: exit code %d, %s", address, got.code, got.stderr)
		}
	}
}
