// Image writes an OCI image of baton for several architectures, as an archive of the OCI layout, with
// nothing but the standard library: no daemon, no registry. The same arguments give the same bytes.
//
//	image -version v1.2.3 -commit 0123abcd -epoch 1700000000 -out image.tar amd64=FILE arm64=FILE
//
// The image holds the program, the certificate authorities of Mozilla, a user, and the folders that
// baton writes to. There is no shell.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is the number that the program runs as. No user of a host has it by chance.
const user = 65532

type arguments struct {
	version, commit, out string
	made                 time.Time
	programs             []string // arch=file
}

func main() {
	var a arguments
	var epoch int64
	flag.StringVar(&a.version, "version", "dev", "the image's tag and label")
	flag.StringVar(&a.commit, "commit", "", "the commit that the programs were built from")
	flag.Int64Var(&epoch, "epoch", 0, "the time of everything in the image, seconds since 1970")
	flag.StringVar(&a.out, "out", "", "the archive to write")
	flag.Parse()
	a.made, a.programs = time.Unix(epoch, 0).UTC(), flag.Args()
	if err := write(a); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// The types below follow the specs of the Open Container Initiative, image-spec 1.1.
type (
	descriptor struct {
		MediaType   string            `json:"mediaType"`
		Digest      string            `json:"digest"`
		Size        int               `json:"size"`
		Platform    *platform         `json:"platform,omitempty"`
		Annotations map[string]string `json:"annotations,omitempty"`
	}
	platform struct {
		Architecture string `json:"architecture"`
		OS           string `json:"os"`
	}
	manifest struct {
		SchemaVersion int               `json:"schemaVersion"`
		MediaType     string            `json:"mediaType"`
		Config        *descriptor       `json:"config,omitempty"`
		Layers        []descriptor      `json:"layers,omitempty"`
		Manifests     []descriptor      `json:"manifests,omitempty"`
		Annotations   map[string]string `json:"annotations,omitempty"`
	}
	image struct {
		Created      time.Time `json:"created"`
		Architecture string    `json:"architecture"`
		OS           string    `json:"os"`
		Config       settings  `json:"config"`
		RootFS       rootFS    `json:"rootfs"`
		History      []history `json:"history"`
	}
	settings struct {
		User         string
		Env          []string
		Entrypoint   []string
		Cmd          []string
		ExposedPorts map[string]struct{}
		Volumes      map[string]struct{}
		WorkingDir   string
		Labels       map[string]string
		StopSignal   string
		// Docker's own, not in the specification: other runtimes pass it over.
		Healthcheck healthcheck
	}
	healthcheck struct {
		Test                           []string
		Interval, Timeout, StartPeriod time.Duration
		Retries                        int
	}
	rootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	}
	history struct {
		Created   time.Time `json:"created"`
		CreatedBy string    `json:"created_by"`
	}
)

const media = "application/vnd.oci.image."

// archive is an OCI layout that grows.
type archive struct {
	files []file
	has   map[string]bool
}

func (a *archive) add(name string, content []byte) {
	if !a.has[name] {
		a.has[name] = true
		a.files = append(a.files, file{name: name, mode: 0o644, content: content})
	}
}

// blob adds one content under its digest.
func (a *archive) blob(kind string, content []byte) descriptor {
	sum := sha256.Sum256(content)
	a.add("blobs/sha256/"+hex.EncodeToString(sum[:]), content)
	return descriptor{MediaType: media + kind, Digest: digest(content), Size: len(content)}
}

func (a *archive) json(kind string, v any) (descriptor, error) {
	text, err := json.Marshal(v)
	return a.blob(kind, text), err
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func write(args arguments) error {
	if len(args.programs) == 0 || args.out == "" {
		return fmt.Errorf("want -out and at least one ARCH=FILE")
	}
	labels := map[string]string{
		"org.opencontainers.image.title":       "baton",
		"org.opencontainers.image.description": "Runs scheduled jobs on one of many hosts: flushes Redis data into a SQL database",
		"org.opencontainers.image.version":     args.version,
		"org.opencontainers.image.revision":    args.commit,
		"org.opencontainers.image.created":     args.made.Format(time.RFC3339),
		"org.opencontainers.image.licenses":    "Apache-2.0",
	}
	a := &archive{has: map[string]bool{}}
	index := manifest{SchemaVersion: 2, MediaType: media + "index.v1+json", Annotations: labels}
	for _, program := range args.programs {
		arch, path, ok := strings.Cut(program, "=")
		if !ok {
			return fmt.Errorf("%q: want ARCH=FILE", program)
		}
		d, err := platformImage(a, args.made, labels, arch, path)
		if err != nil {
			return err
		}
		index.Manifests = append(index.Manifests, d)
	}
	all, err := a.json("index.v1+json", index)
	if err != nil {
		return err
	}
	all.Annotations = map[string]string{"org.opencontainers.image.ref.name": args.version}
	top, err := json.Marshal(manifest{SchemaVersion: 2, MediaType: media + "index.v1+json", Manifests: []descriptor{all}})
	if err != nil {
		return err
	}
	a.add("index.json", top)
	a.add("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`))
	content, err := tarOf(a.files, args.made)
	if err != nil {
		return err
	}
	return os.WriteFile(args.out, content, 0o644)
}

// platformImage adds the image of one architecture.
func platformImage(a *archive, made time.Time, labels map[string]string, arch, path string) (descriptor, error) {
	program, err := os.ReadFile(path)
	if err != nil {
		return descriptor{}, err
	}
	layer, err := tarOf(root(program), made)
	if err != nil {
		return descriptor{}, err
	}
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return descriptor{}, err
	}
	if _, err := z.Write(layer); err != nil {
		return descriptor{}, err
	}
	if err := z.Close(); err != nil {
		return descriptor{}, err
	}
	config, err := a.json("config.v1+json", image{
		Created: made, Architecture: arch, OS: "linux",
		Config: settings{
			User:         fmt.Sprintf("%d:%d", user, user),
			Env:          []string{"PATH=/usr/bin", "RUNTIME_DIRECTORY=/run/baton", "STATE_DIRECTORY=/var/lib/baton"},
			Entrypoint:   []string{"/usr/bin/baton"},
			Cmd:          []string{"run", "--config", "/etc/baton/baton.yaml"},
			ExposedPorts: map[string]struct{}{"9747/tcp": {}},
			Volumes:      map[string]struct{}{"/run/baton": {}, "/var/lib/baton": {}},
			WorkingDir:   "/",
			Labels:       labels,
			StopSignal:   "SIGTERM",
			Healthcheck: healthcheck{
				Test:     []string{"CMD", "/usr/bin/baton", "status", "--server", "http://127.0.0.1:9747", "-o", "json"},
				Interval: 15 * time.Second, Timeout: 5 * time.Second, StartPeriod: 10 * time.Second, Retries: 3,
			},
		},
		RootFS:  rootFS{Type: "layers", DiffIDs: []string{digest(layer)}},
		History: []history{{Created: made, CreatedBy: "make image"}},
	})
	if err != nil {
		return descriptor{}, err
	}
	m, err := a.json("manifest.v1+json", manifest{
		SchemaVersion: 2, MediaType: media + "manifest.v1+json", Config: &config,
		Layers: []descriptor{a.blob("layer.v1.tar+gzip", packed.Bytes())}, Annotations: labels,
	})
	m.Platform = &platform{Architecture: arch, OS: "linux"}
	return m, err
}

// file is one entry of a tar: a folder if the name ends with a slash.
type file struct {
	name    string
	mode    int64
	owner   int // and group
	content []byte
}

// root is the file system of the image.
func root(program []byte) []file {
	var authorities bytes.Buffer
	for r := range bundle.Roots() {
		_ = pem.Encode(&authorities, &pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate}) // into memory
	}
	return []file{
		{name: "etc/", mode: 0o755},
		{name: "etc/baton/", mode: 0o755},
		{name: "etc/group", mode: 0o644, content: fmt.Appendf(nil, "root:x:0:\nbaton:x:%d:\n", user)},
		{name: "etc/nsswitch.conf", mode: 0o644, content: []byte("hosts: files dns\n")},
		{name: "etc/passwd", mode: 0o644, content: fmt.Appendf(nil,
			"root:x:0:0:root:/:/sbin/nologin\nbaton:x:%d:%d:baton:/var/lib/baton:/sbin/nologin\n", user, user)},
		{name: "etc/ssl/", mode: 0o755},
		{name: "etc/ssl/certs/", mode: 0o755},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, content: authorities.Bytes()},
		{name: "run/", mode: 0o755},
		{name: "run/baton/", mode: 0o750, owner: user},
		{name: "tmp/", mode: 0o1777},
		{name: "usr/", mode: 0o755},
		{name: "usr/bin/", mode: 0o755},
		{name: "usr/bin/baton", mode: 0o755, content: program},
		{name: "var/", mode: 0o755},
		{name: "var/lib/", mode: 0o755},
		{name: "var/lib/baton/", mode: 0o700, owner: user},
	}
}

// tarOf writes the files in their order.
func tarOf(files []file, made time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range files {
		h := &tar.Header{
			Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Uid: f.owner, Gid: f.owner,
			Size: int64(len(f.content)), ModTime: made, Format: tar.FormatPAX,
		}
		if strings.HasSuffix(f.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}
