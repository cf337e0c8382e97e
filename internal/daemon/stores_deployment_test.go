package daemon

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/config"
	"baton/internal/doctor"
	"baton/internal/testsupport"
)

// deployment is a store, a way to write to the store, and a fault after which the store recovers by itself. A nil fault means no fault.
type deployment struct {
	config.Store
	do    func(command string, args ...any) error
	fault func()
}

// A store can have every deployment that the Redis of the lock can have. The node's Redis user has only the permissions of the
// documentation.
func TestAJobReadsAStoreOfEveryDeployment(t *testing.T) {
	for name, begin := range map[string]func(t *testing.T) deployment{
		"sentinel with passwords and mTLS": func(t *testing.T) deployment {
			s := testsupport.StartSentinel(t, testsupport.RedisTLS(true), testsupport.RedisPassword("treasure"), testsupport.SentinelPassword("watchman"))
			ca, cert, key := s.Master().TLSFiles()
			var killed *testsupport.Redis
			return deployment{config.Store{
				Sentinel:     &config.Sentinel{Master: s.Name(), Addresses: s.Addresses(), PasswordFile: secretFile(t, "watchman")},
				PasswordFile: secretFile(t, "treasure"), Database: 2,
				TLS: &config.TLS{CAFile: ca, CertFile: cert, KeyFile: key},
			}, func(command string, args ...any) error {
				c := s.AwaitMaster(killed).Conn()
				defer c.Close()
				if _, err := c.Do("SELECT", 2); err != nil {
					return err
				}
				_, err := c.Do(command, args...)
				return err
			}, func() {
				killed = s.Master()
				killed.Kill()
			}}
		},
		"cluster": func(t *testing.T) deployment {
			c := testsupport.StartCluster(t, testsupport.RedisPassword("treasure"))
			var killed *testsupport.Redis
			return deployment{config.Store{Cluster: c.Addresses()[:2], PasswordFile: secretFile(t, "treasure")},
				func(command string, args ...any) error {
					conn := c.AwaitOwner(args[0].(string), killed).Conn()
					defer conn.Close()
					_, err := conn.Do(command, args...)
					return err
				}, func() {
					killed = c.Owner("views")
					killed.Kill()
				}}
		},
		"unix socket": func(t *testing.T) deployment {
			r := testsupport.StartRedis(t, testsupport.RedisUnix())
			return deployment{config.Store{URL: r.SocketURL()}, doing(r.Conn()), nil}
		},
		"TLS and the documented user": func(t *testing.T) deployment {
			r := testsupport.StartRedis(t, testsupport.RedisTLS(true), testsupport.RedisPassword("treasure"))
			user := testsupport.DocumentedUser(t)
			user = slices.DeleteFunc(user, func(arg any) bool {
				return slices.Contains([]any{"~baton", "~{baton}:*", "~baton:locks", "&{baton}:wake"}, arg)
			})
			for i, arg := range user {
				user[i] = strings.ReplaceAll(arg.(string), "views:*", "views")
			}
			r.Client(t).Do("ACL", user...)
			ca, cert, key := r.TLSFiles()
			return deployment{config.Store{
				URL: regexp.MustCompile(`//.*@`).ReplaceAllString(r.URL(), "//"), Username: "baton", PasswordFile: secretFile(t, "PASSWORD"),
				TLS: &config.TLS{CAFile: ca, CertFile: cert, KeyFile: key},
			}, doing(r.Conn()), nil}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := begin(t)
			l := newJobLab(t)
			l.config.Election.TTL = 30 * time.Second // a lease that a busy machine keeps
			l.config.Stores = map[string]config.Store{"shop": store.Store}
			l.job("sales", "@every 200ms")
			l.config.Jobs[0].Flush.From.Store, l.config.Jobs[0].Flush.From.Key = "shop", "views"
			r := l.start()
			epoch := r.epoch()
			write := func(id string, n int) {
				await(t, "the store to take a change", func() bool { return store.do("HINCRBY", "views", id, n) == nil })
			}
			write("1", 10)
			l.awaitRows("[[1 10]]")
			for _, f := range doctor.Examine(t.Context(), l.config, doctor.Options{}) {
				if f.Severity == doctor.SeverityError && !strings.Contains(f.What, "keeps nothing on disk") {
					t.Errorf("doctor: %+v", f)
				}
			}
			if store.fault != nil {
				store.fault()
				await(t, "the store to be back", func() bool { return store.do("HSET", "views", "2", 20) == nil })
				await(t, "its change", func() bool {
					return strings.HasSuffix(fmt.Sprint(l.db.Rows(t, "SELECT id, views FROM articles ORDER BY id")), "[2 20]]")
				})
				await(t, "the metric", func() bool { return r.metric(`baton_store_up{store="shop"}`) == "1" })
			}
			if now := r.epoch(); now != epoch {
				t.Errorf("the election noticed: epoch %s, now %s", epoch, now)
			}
			r.endsWell()
		})
	}
}

func doing(c redis.Conn) func(command string, args ...any) error {
	return func(command string, args ...any) error {
		_, err := c.Do(command, args...)
		return err
	}
}

// The permissions that doctor prints are all that the user lacks.
func TestAUserOfAStoreThatHasWhatDoctorPrintsIsEnough(t *testing.T) {
	t.Parallel()
	l, shop := storesLab(t, "@every 200ms")
	l.config.Stores["shop"] = config.Store{URL: shop.URL(), Username: "baton", PasswordInline: "PASSWORD"}
	admin := shop.Client(t)
	admin.Do("ACL", "SETUSER", "baton", "on", ">PASSWORD", "resetkeys", "resetchannels", "-@all", "+multi", "+discard", "+select", "+client|setname", "+info")
	l.config = l.config.WithDefaults()
	remedy := regexp.MustCompile(`ACL SETUSER … (.*) \(docs`)
	granted := 0
	for round := 0; ; round++ {
		var rules []any
		for _, f := range doctor.Examine(t.Context(), l.config, doctor.Options{}) {
			if m := remedy.FindStringSubmatch(f.Remedy); m != nil {
				for rule := range strings.FieldsSeq(m[1]) {
					if strings.HasPrefix(rule, "+") || strings.HasPrefix(rule, "~") {
						rules = append(rules, rule)
					}
				}
			}
		}
		if len(rules) == 0 {
			break
		}
		if granted += len(rules); round > 9 {
			t.Fatalf("doctor still wants %v", rules)
		}
		admin.Do("ACL", append([]any{"SETUSER", "baton"}, rules...)...)
	}
	if granted == 0 {
		t.Fatalf("doctor wants nothing for a user that may do nothing: %+v", doctor.Examine(t.Context(), l.config, doctor.Options{}))
	}
	t.Logf("%d rules: %s", granted, admin.Do("ACL", "LIST"))
	if rights := fmt.Sprintf("%s", admin.Do("ACL", "LIST")); !strings.Contains(rights, "+ping") {
		t.Error("doctor does not want PING")
	}
	r := l.start()
	admin.Do("HSET", "views", "2", 20)
	l.awaitRows("[[2 20]]")
	await(t, "the metric", func() bool { return r.metric(`baton_store_up{store="shop"}`) == "1" })
	r.endsWell()
}
