package crash

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
)

// Lease is the content of the file that a leader writes on its host. With this file the lock can be released immediately after a crash,
// instead of when the lease has ended.
type Lease struct {
	LockKey string `json:"lock_key"`
	Owner   string `json:"owner"`
	Epoch   int64  `json:"epoch"`
}

// LeasePath returns the path of lease.json in the first of systemd's runtime directories. It returns false if there is no such directory.
func LeasePath(getenv func(string) (string, bool)) (string, bool) {
	dirs, _ := getenv("RUNTIME_DIRECTORY")
	dir, _, _ := strings.Cut(dirs, ":") // a unit may have several directories
	if dir == "" {
		return "", false // not "lease.json", which would be a file in the daemon's working directory
	}
	return filepath.Join(dir, "lease.json"), true
}

// LeasePathOf returns the path of the lease file of a lock other than the node's own lock. It is beside the file of the node's own lock.
func LeasePathOf(own, lockKey string) string {
	sum := sha256.Sum256([]byte(lockKey))
	return strings.TrimSuffix(own, ".json") + "-" + hex.EncodeToString(sum[:6]) + ".json"
}

// leasePaths returns all existing lease files.
func leasePaths(own string) []string {
	others, _ := filepath.Glob(strings.TrimSuffix(own, ".json") + "-*.json") // the pattern is valid
	return append([]string{own}, others...)
}

// WriteLease writes the lease file, and replaces an existing one.
func WriteLease(path string, l Lease) error {
	text, err := json.Marshal(l)
	if err == nil {
		err = renameio.WriteFile(path, append(text, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("write %s, which allows an immediate takeover after a crash: %w", path, err)
	}
	return nil
}

// ReadLease reads a lease file. If the file does not exist, it returns false: then the node did not lead, or has released the lock.
func ReadLease(path string) (Lease, bool, error) {
	var l Lease
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return l, false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &l)
	}
	if err != nil {
		return l, false, fmt.Errorf("read %s: %w", path, err)
	}
	return l, true, nil
}

// RemoveLease removes the lease file. A missing file is no error.
func RemoveLease(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return nil
}
