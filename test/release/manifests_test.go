package release

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"baton/internal/testsupport/cluster"
)

// The configurations that are shipped for containers are such that a node starts with them.
func TestTheConfigurationsForContainersAreRight(t *testing.T) {
	t.Parallel()
	compose, err := os.ReadFile("../../deploy/compose/baton.yaml")
	if err != nil {
		t.Fatal(err)
	}
	secret, err := os.ReadFile("../../deploy/kubernetes/base/secret.yaml")
	if err != nil {
		t.Fatal(err)
	}
	secrets := t.TempDir()
	for name, content := range map[string]string{"redis-password": "r", "main.dsn": "postgres://baton:p@postgres:5432/app"} {
		if !strings.Contains(string(secret), "\n  "+name+": ") {
			t.Errorf("the Secret has no %s", name)
		}
		if err := os.WriteFile(filepath.Join(secrets, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	configs := []string{string(compose)}
	for _, of := range []string{"base", "overlays/staging"} {
		text, err := os.ReadFile(filepath.Join("../../deploy/kubernetes", of, "baton.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		configs = append(configs, strings.ReplaceAll(string(text), "/etc/baton-secrets", secrets))
	}
	for _, config := range configs {
		path := filepath.Join(t.TempDir(), "baton.yaml")
		if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, "", []string{"REDIS_PASSWORD=r", "POSTGRES_PASSWORD=p"}, cluster.Build(t), "config", "check", "--config", path)
	}
}
