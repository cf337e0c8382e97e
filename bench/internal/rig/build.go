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
	return Build(ctx, strings.TrimSpace(string(where)), "./cmd/baton", filepath.Join(dir, "baton"))
}

// Build builds a program of the module in root and returns its path.
func Build(ctx context.Context, root, pkg, program string) (string, error) {
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, pkg)
	build.Dir = root
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s in %s: %w\n%s", pkg, root, err, out)
	}
	return program, nil
}
