// Manifests reads what is for Kubernetes by the types of its own API, and what is for compose by the
// compose specification's own library, and the Grafana dashboard by the types of its published schema.
// It fails at the first field that these do not know.
//
//	manifests KUBERNETES.yaml COMPOSE.yaml DASHBOARD.json
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/compose-spec/compose-go/v2/cli"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: manifests KUBERNETES.yaml COMPOSE.yaml DASHBOARD.json")
		os.Exit(2)
	}
	err := errors.Join(kubernetes(os.Stdout, os.Args[1]), compose(os.Stdout, os.Args[2]), grafana(os.Stdout, os.Args[3]))
	if err != nil {
		fmt.Fprintln(os.Stderr, "manifests:", err)
		os.Exit(1)
	}
}

func kubernetes(out io.Writer, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for _, part := range bytes.Split(text, []byte("\n---\n")) {
		var of struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal(part, &of); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		var object any
		switch of.APIVersion + " " + of.Kind {
		case "v1 ConfigMap":
			object = &core.ConfigMap{}
		case "v1 Secret":
			object = &core.Secret{}
		case "v1 Service":
			object = &core.Service{}
		case "apps/v1 Deployment":
			object = &apps.Deployment{}
		case "policy/v1 PodDisruptionBudget":
			object = &policy.PodDisruptionBudget{}
		default:
			return fmt.Errorf("%s: an object that is not known here: %s %s", path, of.APIVersion, of.Kind)
		}
		if err := yaml.UnmarshalStrict(part, object); err != nil {
			return fmt.Errorf("%s: %s: %w", path, of.Kind, err)
		}
		fmt.Fprintln(out, of.APIVersion, of.Kind)
	}
	return nil
}

func compose(out io.Writer, path string) error {
	options, err := cli.NewProjectOptions([]string{path}, cli.WithWorkingDirectory(filepath.Dir(path)), cli.WithEnv([]string{
		"REDIS_PASSWORD=r", "POSTGRES_PASSWORD=p", "GRAFANA_PASSWORD=g",
	}))
	if err != nil {
		return err
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, name := range project.ServiceNames() {
		for _, v := range project.Services[name].Volumes {
			if v.Type != "bind" {
				continue
			}
			if _, err := os.Stat(v.Source); err != nil {
				return fmt.Errorf("%s: service %s: %w", path, name, err)
			}
		}
		fmt.Fprintln(out, "service", name)
	}
	return nil
}
