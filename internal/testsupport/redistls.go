package testsupport

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// RedisTLS makes the server speak TLS only, with a certificate for 127.0.0.1 and localhost by a certification authority (CA) of its own.
// With clientCert the server also requires a certificate from its clients (mTLS). The servers of StartSentinel and StartCluster share one
// CA, and speak TLS to each other.
func RedisTLS(clientCert bool) RedisOption {
	return func(o *redisOptions) { o.tls = &tlsOption{clientCert: clientCert} }
}

// tlsOption contains the argument of RedisTLS, and the certificates if these were made already.
type tlsOption struct {
	clientCert bool
	files      *tlsFiles
}

// in makes the certificates in dir, unless they were made already.
func (o *tlsOption) in(dir string) (*tlsFiles, error) {
	if o.files != nil {
		return o.files, nil
	}
	return newTLSFiles(dir, o.clientCert)
}

// tlsFiles is a CA with the certificates of a server and a client, all in PEM files.
type tlsFiles struct {
	dir        string
	clientCert bool
	roots      *x509.CertPool
	client     tls.Certificate
}

func (f *tlsFiles) path(name string) string { return filepath.Join(f.dir, name) }

// args returns the arguments of the server. With these arguments, the server's own connections to other servers also use the certificates.
func (f *tlsFiles) args(port int) []string {
	auth := "no"
	if f.clientCert {
		auth = "yes"
	}
	return []string{
		"--port", "0", "--tls-port", fmt.Sprint(port), "--tls-replication", "yes", "--tls-auth-clients", auth,
		"--tls-ca-cert-file", f.path("ca.pem"), "--tls-cert-file", f.path("server.pem"), "--tls-key-file", f.path("server.key"),
	}
}

// config returns a new TLS configuration for a client.
func (f *tlsFiles) config() *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: f.roots}
	if f.clientCert {
		c.Certificates = []tls.Certificate{f.client}
	}
	return c
}

// names returns the paths that a client needs in its configuration.
func (f *tlsFiles) names() (ca, cert, key string) {
	if !f.clientCert {
		return f.path("ca.pem"), "", ""
	}
	return f.path("ca.pem"), f.path("client.pem"), f.path("client.key")
}

// newTLSFiles makes a CA and the certificates that it signs. The key of the CA is not saved.
func newTLSFiles(dir string, clientCert bool) (*tlsFiles, error) {
	f := &tlsFiles{dir: dir, clientCert: clientCert, roots: x509.NewCertPool()}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	ca := certificate("test CA")
	ca.IsCA, ca.BasicConstraintsValid, ca.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	if ca, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	f.roots.AddCert(ca)
	if err := writePEM(f.path("ca.pem"), "CERTIFICATE", der); err != nil {
		return nil, err
	}
	for _, name := range []string{"server", "client"} {
		if err := f.issue(name, ca, key); err != nil {
			return nil, err
		}
	}
	f.client, err = tls.LoadX509KeyPair(f.path("client.pem"), f.path("client.key"))
	return f, err
}

// issue writes a certificate and its key to NAME.pem and NAME.key.
func (f *tlsFiles) issue(name string, ca *x509.Certificate, caKey *ecdsa.PrivateKey) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	c := certificate(name)
	c.KeyUsage = x509.KeyUsageDigitalSignature
	c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if name == "server" { // a server is also a client of its master and its Cluster
		c.ExtKeyUsage = append(c.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
		c.DNSNames = []string{"localhost"}
		c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	}
	der, err := x509.CreateCertificate(rand.Reader, c, ca, &key.PublicKey, caKey)
	if err != nil {
		return err
	}
	if err := writePEM(f.path(name+".pem"), "CERTIFICATE", der); err != nil {
		return err
	}
	if der, err = x509.MarshalPKCS8PrivateKey(key); err != nil {
		return err
	}
	return writePEM(f.path(name+".key"), "PRIVATE KEY", der)
}

func certificate(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: "baton " + name},
		NotBefore:    time.Now().Add(-24 * time.Hour), // because some tests step a clock back
		NotAfter:     time.Now().Add(24 * time.Hour),
	}
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}

// TLSConfig returns the configuration of a client that the server accepts, or nil without RedisTLS.
func (r *RedisDaemon) TLSConfig() *tls.Config {
	if r.tls == nil {
		return nil
	}
	return r.tls.config()
}

// TLSFiles returns the path of the CA's certificate. If the server requires a client certificate, TLSFiles also returns the paths of a
// certificate and its key. Without RedisTLS all paths are empty.
func (r *RedisDaemon) TLSFiles() (ca, cert, key string) {
	if r.tls == nil {
		return "", "", ""
	}
	return r.tls.names()
}

// TLSConfig returns the configuration of a client that the server accepts, or nil without RedisTLS.
func (r *Redis) TLSConfig() *tls.Config { return r.daemon.TLSConfig() }

// TLSFiles returns the path of the CA's certificate. If the server requires a client certificate, TLSFiles also returns the paths of a
// certificate and its key. Without RedisTLS all paths are empty.
func (r *Redis) TLSFiles() (ca, cert, key string) { return r.daemon.TLSFiles() }
