package release

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"baton/internal/testsupport/cluster"
)

// The configurations that are shipped for containers are such that a node starts with them.
func TestTheConfigurationsForContainersAreRight(t *testing.T) {
	t.Parallel()
	compose, err := os.ReadFile("../../deploy/compose/baton.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../deploy/kubernetes/baton.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var kubernetes struct {
		Kind string
		Data map[string]string
	}
	first, _, _ := strings.Cut(string(text), "\n---\n")
	if err := yaml.Unmarshal([]byte(first), &kubernetes); err != nil || kubernetes.Kind != "ConfigMap" {
		t.Fatalf("%v: the manifest begins with a %s", err, kubernetes.Kind)
	}
	secrets := t.TempDir()
	for name, content := range map[string]string{"redis-password": "r", "main.dsn": "postgres://baton:p@postgres:5432/app"} {
		if !strings.Contains(string(text), "\n  "+name+": ") {
			t.Errorf("the Secret has no %s", name)
		}
		if err := os.WriteFile(filepath.Join(secrets, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, config := range map[string]string{
		"compose":    string(compose),
		"kubernetes": strings.ReplaceAll(kubernetes.Data["baton.yaml"], "/etc/baton-secrets", secrets),
	} {
		path := filepath.Join(t.TempDir(), "baton.yaml")
		if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, "", []string{"REDIS_PASSWORD=r", "POSTGRES_PASSWORD=p"}, cluster.Build(t), "config", "check", "--config", path)
	}
}
