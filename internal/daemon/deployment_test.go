package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"baton/internal/config"
	"baton/internal/testsupport"
)

// With only the configuration the daemon finds the master, leads, and reports where it leads.
func TestADaemonLeadsOnEveryRedisDeployment(t *testing.T) {
	for name, begin := range map[string]func(t *testing.T) (config.Redis, string){
		"sentinel with passwords and mTLS": func(t *testing.T) (config.Redis, string) {
			s := testsupport.StartSentinel(t, testsupport.RedisTLS(true), testsupport.RedisPassword("treasure"), testsupport.SentinelPassword("watchman"))
			ca, cert, key := s.Master().TLSFiles()
			return config.Redis{
				Sentinel:     &config.Sentinel{Master: s.Name(), Addresses: s.Addresses(), PasswordFile: secretFile(t, "watchman")},
				PasswordFile: secretFile(t, "treasure"), Database: 2,
				TLS: &config.TLS{CAFile: ca, CertFile: cert, KeyFile: key},
			}, s.Name()
		},
		"cluster": func(t *testing.T) (config.Redis, string) {
			c := testsupport.StartCluster(t, testsupport.RedisPassword("treasure"))
			return config.Redis{Cluster: c.Addresses()[:2], PasswordFile: secretFile(t, "treasure")}, "cluster"
		},
		"unix socket": func(t *testing.T) (config.Redis, string) {
			r := testsupport.StartRedis(t, testsupport.RedisUnix())
			return config.Redis{URL: r.SocketURL()}, strings.TrimPrefix(r.SocketURL(), "unix://")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redis, where := begin(t)
			c := configFor("")
			c.Redis = redis
			r := start(t, c, nil)
			r.leads()
			if told := r.logs.FilterMessage("started").All(); len(told) != 1 || !strings.Contains(told[0].ContextMap()["redis"].(string), where) {
				t.Errorf("what was told of the start: %v; want %q named", told, where)
			}
			if err := r.end(); err != nil {
				t.Errorf("the daemon ended with %v", err)
			}
		})
	}
}

func secretFile(t *testing.T, secret string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
