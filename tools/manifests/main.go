// Manifests builds the files for Kubernetes as kubectl does and reads them by the types of its own API. It reads the compose file by the
// compose specification's own library, and the Grafana dashboard by the types of its published schema.
// It fails at the first field that these do not know.
//
//	manifests KUSTOMIZATIONS COMPOSE.yaml DASHBOARD.json
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/compose-spec/compose-go/v2/cli"
	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: manifests KUSTOMIZATIONS COMPOSE.yaml DASHBOARD.json")
		os.Exit(2)
	}
	err := errors.Join(kubernetes(os.Stdout, os.Args[1]), compose(os.Stdout, os.Args[2]), grafana(os.Stdout, os.Args[3]))
	if err != nil {
		fmt.Fprintln(os.Stderr, "manifests:", err)
		os.Exit(1)
	}
}

// kubernetes builds the base and the overlays of a folder.
func kubernetes(out io.Writer, folder string) error {
	overlays, err := filepath.Glob(filepath.Join(folder, "overlays", "*"))
	if err != nil || len(overlays) == 0 {
		return errors.Join(err, fmt.Errorf("%s has no overlays", folder))
	}
	for _, path := range append(overlays, filepath.Join(folder, "base")) {
		built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), path)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		for _, resource := range built.Resources() {
			text, err := resource.AsYAML()
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			if err := read(text, resource.GetApiVersion()+" "+resource.GetKind()); err != nil {
				return fmt.Errorf("%s: %s %s: %w", path, resource.GetKind(), resource.GetName(), err)
			}
			fmt.Fprintln(out, filepath.Base(path), resource.GetApiVersion(), resource.GetKind(), resource.GetName())
		}
	}
	return nil
}

// read reads an object by the type of its kind: a field that the type does not have is an error.
func read(text []byte, kind string) error {
	kinds := map[string]any{
		"v1 ConfigMap": &core.ConfigMap{}, "v1 Secret": &core.Secret{}, "v1 Service": &core.Service{},
		"apps/v1 Deployment": &apps.Deployment{}, "policy/v1 PodDisruptionBudget": &policy.PodDisruptionBudget{},
		"networking.k8s.io/v1 NetworkPolicy": &networking.NetworkPolicy{}, "monitoring.coreos.com/v1 PodMonitor": &monitoring.PodMonitor{},
	}
	object, known := kinds[kind]
	if !known {
		return fmt.Errorf("an object that is not known here: %s", kind)
	}
	return yaml.UnmarshalStrict(text, object)
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
