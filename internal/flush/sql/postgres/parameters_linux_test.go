package postgres

import (
	"crypto/tls"
	"net"
	"syscall"
	"testing"
)

// A parameter that baton accepts must have the same effect as in libpq.
func TestParametersOfLibpqThatAreTakenHaveTheirEffect(t *testing.T) {
	config, err := readDSN("host=h user=u fallback_application_name=a ssl_min_protocol_version=TLSv1.3 ssl_max_protocol_version=TLSv1.3")
	if err != nil {
		t.Fatal(err)
	}
	c := config.ConnConfig
	if c.RuntimeParams["application_name"] != "a" || len(c.RuntimeParams) != 1 || c.TLSConfig.MinVersion != tls.VersionTLS13 ||
		c.TLSConfig.MaxVersion != tls.VersionTLS13 {
		t.Errorf("%v, TLS %d to %d", c.RuntimeParams, c.TLSConfig.MinVersion, c.TLSConfig.MaxVersion)
	}
	if config, err = readDSN("host=h user=u fallback_application_name=a application_name=b"); err != nil ||
		config.ConnConfig.RuntimeParams["application_name"] != "b" {
		t.Errorf("%v, want application_name before fallback_application_name", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for dsn, want := range map[string][4]int{
		"keepalives_idle=77 keepalives_interval=7 keepalives_count=3": {1, 77, 7, 3},
		"keepalives=1 keepalives_idle=78":                             {1, 78, 0, 0},
		"keepalives=0 keepalives_idle=77":                             {0, 0, 0, 0},
	} {
		config, err := readDSN("host=h user=u " + dsn)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := config.ConnConfig.DialFunc(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		raw, err := conn.(*net.TCPConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		if err := raw.Control(func(fd uintptr) {
			for i, option := range [4][2]int{
				{syscall.SOL_SOCKET, syscall.SO_KEEPALIVE}, {syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE},
				{syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL}, {syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT},
			} {
				got, err := syscall.GetsockoptInt(int(fd), option[0], option[1])
				if err != nil || got != want[i] && (want[i] > 0 || i == 0) {
					t.Errorf("%s: option %d is %d, want %d (%v)", dsn, i, got, want[i], err)
				}
			}
		}); err != nil {
			t.Error(err)
		}
		_ = conn.Close() // no message was sent on the connection
	}
}
