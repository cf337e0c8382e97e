package rig

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// BuildBaton builds the program as it is shipped and returns its path.
func BuildBaton(ctx context.Context, dir string) (string, error) {
	where, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "baton").Output()
	if err != nil {
		return "", fmt.Errorf("find baton's sources (run this in bench/): %w", err)
	}
	program := filepath.Join(dir, "baton")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, "./cmd/baton")
	build.Dir = strings.TrimSpace(string(where))
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build baton: %w\n%s", err, out)
	}
	return program, nil
}
