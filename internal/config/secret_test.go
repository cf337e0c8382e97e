package config

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRedisCredentialsComeApartFromTheAddress(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "pw")
	write(t, file, planted+"\n")
	for _, tc := range []struct {
		redis                   Redis
		address, user, password string
	}{
		{Redis{URL: "redis://h:1/2"}, "redis://h:1/2", "", ""},
		{Redis{URL: "redis://:p%40ss@h:1"}, "redis://h:1", "", "p@ss"},
		{Redis{URL: "rediss://joe:x@h/1"}, "rediss://h/1", "joe", "x"},
		{Redis{URL: "redis://h", Username: "joe", PasswordFile: file}, "redis://h", "joe", planted},
		{Redis{URL: "redis://h", PasswordInline: "x"}, "redis://h", "", "x"},
		{Redis{URL: "unix://joe:x@/run/s?db=2"}, "unix:///run/s?db=2", "joe", "x"},
		{Redis{Sentinel: &Sentinel{PasswordInline: "y"}, Username: "joe", PasswordInline: "x"}, "", "joe", "x"},
	} {
		password, err := tc.redis.Password()
		if err != nil || tc.redis.Address() != tc.address || tc.redis.User() != tc.user || password != tc.password {
			t.Errorf("%+v: %q %q %q %v", tc.redis, tc.redis.Address(), tc.redis.User(), password, err)
		}
	}
	write(t, file, "rotated")
	if pw, _ := (Redis{PasswordFile: file}).Password(); pw != "rotated" {
		t.Errorf("after rotation: %q", pw)
	}
}

func TestSecretFilesThatCannotBeUsedAreNamed(t *testing.T) {
	dir := t.TempDir()
	empty, two := filepath.Join(dir, "empty"), filepath.Join(dir, "two")
	write(t, empty, "\n")
	write(t, two, planted+"\nsecond\n")
	for path, want := range map[string]string{
		filepath.Join(dir, "none"): "dsn_file: open " + dir + "/none: no such file or directory; create it or correct the path",
		empty:                      "dsn_file: " + empty + " is empty; write the secret into it, on one line",
		two:                        "dsn_file: " + two + " has more than one line; it must hold the secret alone",
		dir:                        "dsn_file: read " + dir + ": is a directory",
	} {
		if _, err := (Database{DSNFile: path}).DSN(); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

func TestSentinelsHaveAPasswordOfTheirOwn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pw")
	write(t, file, planted+"\n")
	for _, s := range []Sentinel{{PasswordFile: file}, {PasswordInline: planted}} {
		if pw, err := (Redis{Sentinel: &s}).SentinelPassword(); err != nil || pw != planted {
			t.Errorf("%+v: %q %v", s, pw, err)
		}
	}
	if pw, err := (Redis{Sentinel: &Sentinel{}}).SentinelPassword(); err != nil || pw != "" {
		t.Errorf("none: %q %v", pw, err)
	}
	_, err := Redis{Sentinel: &Sentinel{PasswordFile: file + "x"}}.SentinelPassword()
	if want := "redis.sentinel.password_file: open " + file + "x: no such file or directory; create it or correct the path"; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestMastersTakeTheSharedCredentialsUnlessTheyHaveTheirOwn(t *testing.T) {
	r := Redis{
		URL: "redis://:data@d", Username: "joe", PasswordInline: "shared", TLS: &TLS{CAFile: "/ca"},
		Quorum: []string{"redis://a", "rediss://u:own@b/1", "redis://@c"},
	}
	want := []Redis{
		{URL: "redis://a", Username: "joe", PasswordInline: "shared", TLS: r.TLS},
		{URL: "rediss://u:own@b/1", TLS: r.TLS},
		{URL: "redis://@c", TLS: r.TLS},
	}
	if diff := cmp.Diff(want, r.Masters()); diff != "" {
		t.Error(diff)
	}
	if m := (Redis{URL: "redis://a"}).Masters(); len(m) != 0 {
		t.Errorf("no quorum has the masters %v", m)
	}
}

// certificate makes a self-signed certificate and its key, and returns the paths of the PEM files.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour), IsCA: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	write(t, cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	write(t, key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})))
	return cert, key
}

func TestTLSIsOnWhereTheConfigurationSaysSo(t *testing.T) {
	for _, tc := range []struct {
		redis Redis
		on    bool
	}{
		{Redis{URL: "redis://h"}, false},
		{Redis{URL: "valkey://h"}, false},
		{Redis{URL: "unix:///s"}, false},
		{Redis{URL: "rediss://h"}, true},
		{Redis{URL: "VALKEYS://h"}, true},
		{Redis{Cluster: []string{"a:1"}}, false},
		{Redis{Cluster: []string{"a:1"}, TLS: &TLS{}}, true},
		{Redis{Sentinel: &Sentinel{}}, false},
		{Redis{Sentinel: &Sentinel{}, TLS: &TLS{}}, true},
		// The TLS setting of a quorum's masters does not apply to the data.
		{Redis{URL: "redis://h", TLS: &TLS{CAFile: "/none"}}, false},
	} {
		c, err := tc.redis.TLSConfig()
		if err != nil || (c != nil) != tc.on {
			t.Errorf("%+v: %v, %v", tc.redis, c, err)
		}
		if c != nil && (c.MinVersion < tls.VersionTLS12 || c.InsecureSkipVerify || c.RootCAs != nil || c.ServerName != "") {
			t.Errorf("%+v: %+v", tc.redis, c)
		}
	}
}

func TestTLSFilesAreReadAnew(t *testing.T) {
	cert, key := certificate(t)
	r := Redis{URL: "rediss://h", TLS: &TLS{CAFile: cert, CertFile: cert, KeyFile: key, ServerName: "redis.internal"}}
	first, err := r.TLSConfig()
	if err != nil {
		t.Fatal(err)
	}
	alone := x509.NewCertPool()
	if b, err := os.ReadFile(cert); err != nil || !alone.AppendCertsFromPEM(b) {
		t.Fatal(err)
	}
	// With a ca_file the system's certificate authorities are not used.
	if first.RootCAs == nil || !first.RootCAs.Equal(alone) || len(first.Certificates) != 1 || first.ServerName != "redis.internal" {
		t.Errorf("%+v", first)
	}
	renewedCert, renewedKey := certificate(t)
	for from, to := range map[string]string{renewedCert: cert, renewedKey: key} {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	second, err := r.TLSConfig()
	if err != nil {
		t.Fatal(err)
	}
	if first.RootCAs.Equal(second.RootCAs) || first.Certificates[0].Leaf.Equal(second.Certificates[0].Leaf) {
		t.Error("the renewed certificate is not in use")
	}
}

func TestTLSFilesThatCannotBeUsedAreNamed(t *testing.T) {
	cert, key := certificate(t)
	_, otherKey := certificate(t)
	none, junk, locked := cert+"x", filepath.Join(t.TempDir(), "junk"), filepath.Join(t.TempDir(), "locked")
	write(t, junk, planted+"\n")
	write(t, locked, "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n")
	const remedy = "; give a certificate and its private key as PEM files, and the key without a passphrase"
	for _, tc := range []struct {
		tls  TLS
		want string
	}{
		{TLS{CAFile: none}, "redis.tls.ca_file: open " + none + ": no such file or directory; create it or correct the path"},
		{TLS{CAFile: filepath.Dir(cert)}, "redis.tls.ca_file: read " + filepath.Dir(cert) + ": is a directory"},
		{TLS{CAFile: key}, "redis.tls.ca_file: " + key + " has no certificate in it; it must be a PEM file with a line -----BEGIN CERTIFICATE-----"},
		{TLS{CertFile: none, KeyFile: key}, "redis.tls.cert_file: open " + none + ": no such file or directory; create it or correct the path"},
		{TLS{CertFile: cert, KeyFile: none}, "redis.tls.key_file: open " + none + ": no such file or directory; create it or correct the path"},
		{TLS{CertFile: cert, KeyFile: otherKey}, "redis.tls: " + cert + " and " + otherKey + ": tls: private key does not match public key" + remedy},
		{TLS{CertFile: key, KeyFile: cert}, "redis.tls: " + key + " and " + cert + ": tls: "},
		{TLS{CertFile: cert, KeyFile: locked}, "redis.tls: " + cert + " and " + locked + ": tls: failed to parse private key" + remedy},
		{TLS{CertFile: cert, KeyFile: junk}, "redis.tls: " + cert + " and " + junk + ": tls: failed to find any PEM data in key input" + remedy},
	} {
		for _, r := range []Redis{{URL: "rediss://h", TLS: &tc.tls}, {Cluster: []string{"a:1"}, TLS: &tc.tls}} {
			c, err := r.TLSConfig()
			if err == nil || !strings.HasPrefix(err.Error(), tc.want) || strings.Contains(err.Error(), planted) || c != nil {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		}
	}
}
