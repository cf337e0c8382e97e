package doctor

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/config"
	"baton/internal/testsupport"
)

func TestTheDoctorFindsACertificateThatHasExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		files := config.ServerTLS{CertFile: filepath.Join(dir, "tls.crt"), KeyFile: filepath.Join(dir, "tls.key")}
		testsupport.Certify(t, files.CertFile, files.KeyFile, 1)
		for _, want := range []string{"", "has expired"} {
			if want != "" {
				time.Sleep(3 * time.Hour)
			}
			r := &report{}
			r.encryption(config.HTTP{Listen: "127.0.0.1:0", TLS: &files})
			if want == "" && len(r.findings) > 0 || want != "" && (len(r.findings) != 1 || r.findings[0].Severity != SeverityError || !strings.Contains(r.findings[0].What, want)) {
				t.Errorf("%q: %+v", want, r.findings)
			}
		}
	})
}
