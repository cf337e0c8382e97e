// Package release looks into what make image and make release build.
package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
)

func TestMain(m *testing.M) { testsupport.Main(m) }

func run(t *testing.T, dir string, env []string, program string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", program, strings.Join(args, " "), err, out, &complaints)
	}
	return string(out)
}

// entry is a file of a tar.
type entry struct {
	tar.Header

	content []byte
}

func unpack(t *testing.T, archive []byte) map[string]entry {
	t.Helper()
	all := map[string]entry{}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all[h.Name] = entry{*h, content}
	}
}

// descriptor names a blob, as the image specification has it.
type descriptor struct {
	MediaType, Digest string
	Size              int
	Platform          struct{ Architecture, OS string }
	Annotations       map[string]string
}

// blob is what a descriptor names, into out if that is not nil.
func blob(t *testing.T, layout map[string]entry, d descriptor, out any) []byte {
	t.Helper()
	content := layout["blobs/sha256/"+strings.TrimPrefix(d.Digest, "sha256:")].content
	if sum := sha256.Sum256(content); "sha256:"+hex.EncodeToString(sum[:]) != d.Digest || len(content) != d.Size {
		t.Fatalf("blob %+v has %d bytes with the sum %x", d, len(content), sum)
	}
	if out != nil {
		if err := json.Unmarshal(content, out); err != nil {
			t.Fatal(err)
		}
	}
	return content
}

type manifest struct {
	Config    descriptor
	Layers    []descriptor
	Manifests []descriptor
}

func TestTheImageHasTheProgramAndNoMore(t *testing.T) {
	t.Parallel()
	program, dir := cluster.Build(t), t.TempDir()
	var archives [][]byte
	for _, name := range []string{"a.tar", "b.tar"} {
		path := filepath.Join(dir, name)
		run(t, "../../tools/image", nil, "go", "run", ".", "-version", "1.2.3", "-commit", "0123abcd", "-epoch", "1700000000", "-out", path,
			"amd64="+program, "arm64="+program)
		archive, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		archives = append(archives, archive)
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("a second image has other bytes")
	}
	layout := unpack(t, archives[0])
	if got := string(layout["oci-layout"].content); got != `{"imageLayoutVersion":"1.0.0"}` {
		t.Errorf("oci-layout is %s", got)
	}
	var top, index, image manifest
	if err := json.Unmarshal(layout["index.json"].content, &top); err != nil || len(top.Manifests) != 1 ||
		top.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "1.2.3" {
		t.Fatalf("%v: %+v", err, top)
	}
	blob(t, layout, top.Manifests[0], &index)
	var architectures []string
	for _, d := range index.Manifests {
		architectures = append(architectures, d.Platform.OS+"/"+d.Platform.Architecture)
	}
	if got := strings.Join(architectures, " "); got != "linux/amd64 linux/arm64" {
		t.Fatalf("the image is for %s", got)
	}
	blob(t, layout, index.Manifests[0], &image)
	var config struct {
		Architecture string
		Config       struct {
			User       string
			Entrypoint []string
			Labels     map[string]string
		}
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	blob(t, layout, image.Config, &config)
	if c := config.Config; config.Architecture != "amd64" || c.User != "65532:65532" || c.Entrypoint[0] != "/usr/bin/baton" ||
		c.Labels["org.opencontainers.image.revision"] != "0123abcd" {
		t.Errorf("the image's configuration is %+v", config)
	}
	packed, err := gzip.NewReader(bytes.NewReader(blob(t, layout, image.Layers[0], nil)))
	if err != nil {
		t.Fatal(err)
	}
	layer, err := io.ReadAll(packed)
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(layer); len(config.RootFS.DiffIDs) != 1 || config.RootFS.DiffIDs[0] != "sha256:"+hex.EncodeToString(sum[:]) {
		t.Errorf("the layer's sum is %x, the configuration has %q", sum, config.RootFS.DiffIDs)
	}
	checkRoot(t, unpack(t, layer), program)
}

// checkRoot looks at the file system of the image.
func checkRoot(t *testing.T, root map[string]entry, program string) {
	t.Helper()
	want, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(root["usr/bin/baton"].content, want) {
		t.Error("the program in the image is another one")
	}
	if !x509.NewCertPool().AppendCertsFromPEM(root["etc/ssl/certs/ca-certificates.crt"].content) {
		t.Error("the image has no certificate authorities")
	}
	for name, e := range root {
		own := name == "run/baton/" || name == "var/lib/baton/"
		if (e.Uid == 65532) != own || e.Mode&0o6000 != 0 || e.Mode&0o002 != 0 && name != "tmp/" || e.ModTime.Unix() != 1700000000 {
			t.Errorf("%s is of user %d with mode %o and time %d", name, e.Uid, e.Mode, e.ModTime.Unix())
		}
		if e.Mode&0o111 != 0 && e.Typeflag == tar.TypeReg && name != "usr/bin/baton" {
			t.Errorf("%s is a program", name)
		}
	}
}
