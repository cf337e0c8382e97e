package testsupport_test

import (
	"crypto/tls"
	"os"
	"testing"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
)

func TestRedisOverTLSIsTrustedThroughItsOwnCA(t *testing.T) {
	r := testsupport.StartRedis(t, testsupport.RedisTLS(false))
	set(t, r.Conn(), "a", "1")
	if _, err := redis.DialURL(r.URL()); err == nil {
		t.Fatal("a client that does not know the CA has connected")
	}
	for _, host := range []string{"127.0.0.1", "localhost"} {
		config := r.TLSConfig()
		config.ServerName = host
		c, err := redis.DialURL(r.URL(), redis.DialTLSConfig(config))
		if err != nil {
			t.Fatalf("as %s: %v", host, err)
		}
		set(t, c, "a", "1")
		_ = c.Close()
	}
	plain, err := redis.Dial("tcp", r.Addr())
	if err == nil {
		defer plain.Close()
		_, err = plain.Do("PING")
	}
	if err == nil {
		t.Fatal("the server answers without TLS")
	}
}

func TestRedisOverMutualTLSWantsACertificate(t *testing.T) {
	r := testsupport.StartRedis(t, testsupport.RedisTLS(true))
	ca, cert, key := r.TLSFiles()
	if _, err := tls.LoadX509KeyPair(cert, key); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(ca); err != nil {
		t.Fatal(err)
	}
	set(t, r.Conn(), "a", "1")
	anonymous := r.TLSConfig()
	anonymous.Certificates = nil
	c, err := redis.DialURL(r.URL(), redis.DialTLSConfig(anonymous))
	if err == nil {
		defer c.Close()
		_, err = c.Do("PING")
	}
	if err == nil {
		t.Fatal("a client without a certificate was served")
	}
}

func TestReplicaFollowsItsMasterOverTLS(t *testing.T) {
	master := testsupport.StartRedis(t, testsupport.RedisTLS(true), testsupport.RedisPassword("secret"))
	set(t, master.Conn(), "a", "1")
	replica := testsupport.StartRedis(t, testsupport.RedisReplicaOf(master))
	if got, err := redis.String(replica.Conn().Do("GET", "a")); err != nil || got != "1" {
		t.Fatalf("GET from the replica: %q, %v", got, err)
	}
}
