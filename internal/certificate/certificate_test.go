package certificate

import (
	"crypto/tls"
	"crypto/x509"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	zapobserver "go.uber.org/zap/zaptest/observer"

	"baton/internal/config"
	"baton/internal/testsupport"
)

func TestOfACertificateThatEndsTheLogTellsOnceSoonAndOnceAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		files := config.ServerTLS{CertFile: filepath.Join(dir, "tls.crt"), KeyFile: filepath.Join(dir, "tls.key")}
		testsupport.Certify(t, files.CertFile, files.KeyFile, 1) // valid for two hours, and one hour has passed
		core, logs := zapobserver.New(zapcore.WarnLevel)
		c := &Certificate{files: files, log: zap.New(core)}
		if err := c.load(); err != nil {
			t.Fatal(err)
		}
		c.warn()
		told := func(want string) {
			t.Helper()
			for range 100 {
				time.Sleep(2 * time.Second)
				if _, err := c.get(nil); err != nil {
					t.Fatal(err)
				}
			}
			all := logs.TakeAll()
			if want == "" && len(all) > 0 || want != "" && (len(all) != 1 || !strings.Contains(all[0].Message, want)) {
				t.Errorf("%v, want %q once", all, want)
			}
		}
		told("")
		time.Sleep(50 * time.Minute)
		told("expires soon: ")
		time.Sleep(10 * time.Minute)
		told("has expired: ")
		told("")
		testsupport.Certify(t, files.CertFile, files.KeyFile, 2)
		told("")
	})
}

func TestACertificateIsCalledOverdueInTheLastTenthOfItsTime(t *testing.T) {
	const day = 24 * time.Hour
	now := time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name            string
		begins, expires time.Duration
		want            string
		refused         bool
	}{
		{"of a year, 15 days left", -350 * day, 15 * day, "", false},
		{"of a year, 13 days left", -352 * day, 13 * day, "expires soon: 2026-07-14 00:00 UTC", false},
		{"of a day, three hours left", -21 * time.Hour, 3 * time.Hour, "", false},
		{"of a day, two hours left", -22 * time.Hour, 2 * time.Hour, "expires soon", false},
		{"expired", -2 * day, -day, "has expired: 2026-06-30", true},
		{"to come", day, 90 * day, "is not valid before 2026-07-02", true},
	} {
		leaf := &x509.Certificate{NotBefore: now.Add(c.begins), NotAfter: now.Add(c.expires)}
		cert := &Certificate{files: config.ServerTLS{CertFile: "/tls.crt"}, pair: &tls.Certificate{Leaf: leaf}}
		if what, refused := cert.Ends(now); refused != c.refused || !strings.Contains(what, c.want) || (what == "") != (c.want == "") {
			t.Errorf("%s: %q, %t", c.name, what, refused)
		}
	}
}
