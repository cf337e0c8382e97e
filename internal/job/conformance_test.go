package job_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"baton/internal/job"
)

// short is how the table writes times: the zone's clock and its offset.
const short = "2006-01-02T15:04:05Z07:00"

// conformance is one case: the slots of a schedule after a time, or, after an
// exclamation mark, a part of the error with which the configuration is refused.
type conformance struct {
	source      string // where it went wrong for somebody; empty: our own
	spec, zone  string
	after, want string
}

func TestScheduleConformance(t *testing.T) {
	rows := [][]conformance{refusals(), expressions(), gaps(), overlaps(), oddZones()}
	total := 0
	for _, part := range rows {
		for _, c := range part {
			total++
			t.Run(c.source+" "+c.spec+" "+c.zone, func(t *testing.T) { c.check(t) })
		}
	}
	if total < 150 {
		t.Errorf("%d cases: some were lost", total)
	}
}

func (c conformance) check(t *testing.T) {
	t.Helper()
	s, err := job.ParseSchedule(c.spec, zone(t, c.zone))
	if text, refused := strings.CutPrefix(c.want, "!"); refused {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("got error %v, want one with %q", err, text)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	at, err := time.Parse(short, c.after)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Fields(c.want)
	var got []string
	for range want {
		if at = s.Next(at); at.IsZero() {
			break
		}
		got = append(got, at.Format(short))
	}
	if diff := cmp.Diff(strings.Join(want, "\n"), strings.Join(got, "\n")); diff != "" {
		t.Errorf("slots (-want +got):\n%s", diff)
	}
	if next := s.Next(at); len(want) == 0 && !next.IsZero() {
		t.Errorf("a slot at %v, want none", next)
	}
}

func refusals() []conformance {
	const (
		zones = "!the time zone does not belong here"
		short = "!too short"
		never = "!it never fires"
		ascii = "!want ASCII digits, names"
		both  = "!some crons run on days that match both"
	)
	return []conformance{
		{"robfig/cron#365", "TZ=", "UTC", "", zones},
		{"robfig/cron#365", "CRON_TZ=", "UTC", "", zones},
		{"robfig/cron#554", "TZ=0", "UTC", "", zones},
		{"robfig/cron#470", "TZ=TZ=TZ=", "UTC", "", zones},
		{"robfig/cron#555", "TZ=UTC ", "UTC", "", zones},
		{"", "TZ=UTC\t0 2 * * *", "UTC", "", zones},
		{"kubernetes/kubernetes#116252", "CRON_TZ=Etc/UTC */20 * * * *", "UTC", "", zones},
		{"kubernetes/kubernetes#84201", "TZ=America/Los_Angeles 30 2 * * *", "UTC", "", zones},
		{"kubernetes/kubernetes#47202", "30 6 * * 1 Europe/Stockholm", "UTC", "", "!6 fields"},
		{"", " TZ=Mars 0 2 * * *", "UTC", "", zones},
		{"", "0 2 * * CRON_TZ=UTC", "UTC", "", zones},

		{"robfig/cron#334", "@every 0s", "UTC", "", short},
		{"go-co-op/gocron#600", "@every -1m", "UTC", "", short},
		{"netresearch/go-cron#88", "@every 1ns", "UTC", "", short},
		{"robfig/cron#534", "@every 1ms", "UTC", "", short},
		{"gdgvda/cron#21", "@every 1.0005s", "UTC", "", "!milliseconds"},
		{"", "@every 1d", "UTC", "", "!no duration"},
		{"", "@every 10", "UTC", "", "!no duration"},
		{"", "@every 99999999999h", "UTC", "", "!no duration"},
		{"", "@every 1h 30m", "UTC", "", "!one duration"},
		{"", "@every5s", "UTC", "", "!no such descriptor"},
		{"dkron-io/dkron#1076", "@at 2022-03-23T00:00:00Z", "UTC", "", "!no such descriptor"},
		{"", "@minutely", "UTC", "", "!no such descriptor"},
		{"", "@reboot", "UTC", "", "!no such descriptor"},
		{"", "@daily 5", "UTC", "", "!no such descriptor"},
		{"", "@always 5s", "UTC", "", "!stands alone"},

		{"", "0 0 30 2 *", "UTC", "", never},
		{"openchoreo/openchoreo#2954", "0 0 31 2 *", "UTC", "", never},
		{"kubeswift-io/kubeswift#586", "0 0 31 4 *", "UTC", "", never},
		{"", "0 0 31 2,4,6,9,11 *", "UTC", "", never},
		{"", "0 0 30-31 feb ?", "UTC", "", never},

		{"dkron-io/dkron#890", "0 30 2 * * *", "UTC", "", "!6 fields"},
		{"hashicorp/nomad#23753", "* * */4 * * * *", "UTC", "", "!7 fields"},
		{"", "30 2 * *", "UTC", "", "!4 fields"},
		{"", "", "UTC", "", "!it is empty"},
		{"", " \t\n ", "UTC", "", "!it is empty"},

		{"robfig/cron#543", "*/90 * * * *", "UTC", "", `!minute "*/90": the step 90`},
		{"", "*/61 * * * *", "UTC", "", `!minute "*/61": the step 61`},
		{"robfig/cron#573", "0 */30 * * *", "UTC", "", `!hour "*/30": the step 30`},
		{"", "0 0 * 1/13 *", "UTC", "", `!month "1/13": the step 13`},
		{"", "0 0 * * 0-6/8", "UTC", "", `!day of week "0-6/8": the step 8`},
		{"", "*/0 * * * *", "UTC", "", `!minute "*/0"`},
		{"", "*/ * * * *", "UTC", "", `!minute "*/"`},
		{"", "*/-5 * * * *", "UTC", "", `!minute "*/-5"`},
		{"", "*/5/5 * * * *", "UTC", "", `!minute "*/5/5"`},
		{"", "/5 * * * *", "UTC", "", `!minute "/5"`},
		{"mtdowling/cron-expression#155", "90 * * * *", "UTC", "", `!minute "90"`},
		{"", "0 24 * * *", "UTC", "", `!hour "24"`},
		{"alseambusher/crontab-ui#114", "0 0 0 * *", "UTC", "", `!day of month "0"`},
		{"", "0 0 32 * *", "UTC", "", `!day of month "32"`},
		{"", "0 0 * 0 *", "UTC", "", `!month "0"`},
		{"", "0 0 * * 8", "UTC", "", `!day of week "8"`},
		{"", "99999999999999999999 * * * *", "UTC", "", "!minute"},
		{"", "18446744073709551616 * * * *", "UTC", "", "!minute"},
		{"", "*/18446744073709551617 * * * *", "UTC", "", "!minute"},
		{"", "-5 * * * *", "UTC", "", "!minute"},
		{"", "5- * * * *", "UTC", "", "!minute"},
		{"", "1-2-3 * * * *", "UTC", "", "!minute"},
		{"", "1,,2 * * * *", "UTC", "", "!element of the list is empty"},
		{"", ",1 * * * *", "UTC", "", "!element of the list is empty"},
		{"", "1, * * * *", "UTC", "", "!element of the list is empty"},
		{"", "*5 * * * *", "UTC", "", "!mixes a star"},
		{"", "1-* * * * *", "UTC", "", "!mixes a star"},
		{"", "+5 * * * *", "UTC", "", ascii},
		{"Airfooox/cron-validate#291", "0.5 1 * * *", "UTC", "", ascii},
		{"", "1_0 * * * *", "UTC", "", ascii},
		{"", "٣٠ ٢ * * *", "UTC", "", ascii},
		{"", "３０ 2 * * *", "UTC", "", ascii},
		{"", "0x10 * * * *", "UTC", "", "!minute"},
		{"", "0 0 * * 5-1", "UTC", "", `!day of week "5-1"`},
		{"systemd-cron/systemd-cron#136", "1 * * * sat-mon", "UTC", "", `!day of week "sat-mon"`},
		{"", "0 22-2 * * *", "UTC", "", `!hour "22-2"`},
		{"", "0 0 * nov-feb *", "UTC", "", `!month "nov-feb"`},
		{"robfig/cron#299", "0 8 L * *", "UTC", "", `!day of month "L"`},
		{"adhocore/gronx#26", "30 9 L */3 *", "UTC", "", `!day of month "L"`},
		{"", "0 8 15W * *", "UTC", "", `!day of month "15W"`},
		{"grumBit/aws_cron_expression_validator#12", "0 2 ? * 5L", "UTC", "", `!day of week "5L"`},
		{"", "0 8 * * 5#2", "UTC", "", `!day of week "5#2"`},
		{"", "H H * * *", "UTC", "", `!minute "H"`},
		{"node-cron/node-cron#115", "*/1 12 * * Monday-Sunday", "UTC", "", `!day of week "Monday-Sunday"`},
		{"", "0 0 * * jan", "UTC", "", `!day of week "jan"`},
		{"robfig/cron#527", "0 0 */2 * 3", "UTC", "", both},
		{"robfig/cron#70", "0 0 */10 * 0", "UTC", "", both},
		{"cronie-crond/cronie#215", "0 0 1 * */2", "UTC", "", both},
		{"", "0 0 */2 * */2", "UTC", "", both},
		{"", "0 0 ?/2 * mon", "UTC", "", both},
	}
}

func expressions() []conformance {
	const utc, monday = "UTC", "2026-03-02T00:00:00Z" // 1 March 2026 is a Sunday
	return []conformance{
		{"robfig/cron#122", "0 0 * * 7", utc, monday, "2026-03-08T00:00:00Z 2026-03-15T00:00:00Z"},
		{"robfig/cron#522", "0 0 * * 0-7", utc, monday, "2026-03-03T00:00:00Z 2026-03-04T00:00:00Z"},
		{"bunkat/later#152", "0 0 * * 6,7", utc, monday, "2026-03-07T00:00:00Z 2026-03-08T00:00:00Z 2026-03-14T00:00:00Z"},
		{"aptible/supercronic#63", "45 4        *  *  6-7", utc, "2020-05-07T20:55:58Z", "2020-05-09T04:45:00Z 2020-05-10T04:45:00Z 2020-05-16T04:45:00Z"},
		{"waldner/croncal#2", "15 21 * * 2-7", utc, "2026-03-07T21:15:00Z", "2026-03-08T21:15:00Z 2026-03-10T21:15:00Z"},
		{"", "0 0 * * 7-7", utc, monday, "2026-03-08T00:00:00Z 2026-03-15T00:00:00Z"},
		{"", "0 0 * * FRI-Sun", utc, monday, "2026-03-06T00:00:00Z 2026-03-07T00:00:00Z 2026-03-08T00:00:00Z 2026-03-13T00:00:00Z"},
		{"", "0 0 * JAN,jUl Mon", utc, monday, "2026-07-06T00:00:00Z 2026-07-13T00:00:00Z"},
		{"", "0 0 * * sun-tue", utc, monday, "2026-03-03T00:00:00Z 2026-03-08T00:00:00Z 2026-03-09T00:00:00Z"},
		{"hashicorp/nomad#8800", "10 15 21 04 *", utc, "2020-09-01T00:00:00Z", "2021-04-21T15:10:00Z 2022-04-21T15:10:00Z"},
		{"", "00 007 * * *", utc, monday, "2026-03-02T07:00:00Z"},
		{"", " \t30\t2 * *  *\n", utc, monday, "2026-03-02T02:30:00Z"},
		{"kontena/pharos-host-upgrades#29", "30 6 * * *", utc, monday, "2026-03-02T06:30:00Z 2026-03-03T06:30:00Z"},
		{"kubernetes/kubernetes#127344", "*/5 14 * * *", utc, "2024-09-13T14:15:00Z", "2024-09-13T14:20:00Z 2024-09-13T14:25:00Z"},
		{"kubernetes/kubernetes#78795", "0 12 * * 5", "America/Los_Angeles", "2019-06-07T09:21:42-07:00", "2019-06-07T12:00:00-07:00 2019-06-14T12:00:00-07:00"},
		{"", "*/60 */24 * * *", utc, monday, "2026-03-03T00:00:00Z"},
		{"stablyai/orca#20202", "5/15 * * * *", utc, monday, "2026-03-02T00:05:00Z 2026-03-02T00:20:00Z 2026-03-02T00:35:00Z 2026-03-02T00:50:00Z 2026-03-02T01:05:00Z"},
		{"zslayton/cron#122", "*/45 * * * *", utc, monday, "2026-03-02T00:45:00Z 2026-03-02T01:00:00Z"},
		{"", "1/2 0 1 1 *", utc, "2026-01-01T00:57:00Z", "2026-01-01T00:59:00Z 2027-01-01T00:01:00Z"},
		{"", "10-20/15 * * * *", utc, monday, "2026-03-02T00:10:00Z 2026-03-02T01:10:00Z"},
		{"", "0,0,0 0 * * *", utc, monday, "2026-03-03T00:00:00Z"},
		{"", "*,5 0 1 1 ?", utc, "2026-01-01T00:57:00Z", "2026-01-01T00:58:00Z 2026-01-01T00:59:00Z 2027-01-01T00:00:00Z"},
		{"", "0 9 ? * 1-5", utc, "2026-03-06T09:00:00Z", "2026-03-09T09:00:00Z"},
		{"", "0 0 */1 * 5", utc, monday, "2026-03-06T00:00:00Z 2026-03-13T00:00:00Z"},
		{"Scogun/kcron-common#35", "0 0 */2 * *", utc, "2024-10-29T00:00:00Z", "2024-10-31T00:00:00Z 2024-11-01T00:00:00Z 2024-11-03T00:00:00Z"},
		{"jmrozanec/cron-utils#336", "0 0 * * */3", utc, "2018-02-08T00:00:00Z", "2018-02-10T00:00:00Z 2018-02-11T00:00:00Z 2018-02-14T00:00:00Z"},
		{"inngest/inngest#2631", "0 0 13 * 5", utc, "2026-03-07T00:00:00Z", "2026-03-13T00:00:00Z 2026-03-20T00:00:00Z"},
		{"robfig/cron#70", "0 0 1-31/10 * 0", utc, "2016-08-31T00:00:00Z", "2016-09-01T00:00:00Z 2016-09-04T00:00:00Z 2016-09-11T00:00:00Z 2016-09-18T00:00:00Z 2016-09-21T00:00:00Z"},
		{"microsoft/azure-container-apps#1660", "5 0 29 2 1", utc, "2026-02-03T00:00:00Z", "2026-02-09T00:05:00Z 2026-02-16T00:05:00Z 2026-02-23T00:05:00Z 2027-02-01T00:05:00Z"},
		{"", "0 0 31 2 1", utc, "2026-02-20T00:00:00Z", "2026-02-23T00:00:00Z 2027-02-01T00:00:00Z"},
		{"", "0 12 31 * *", utc, "2026-03-31T12:00:00Z", "2026-05-31T12:00:00Z 2026-07-31T12:00:00Z 2026-08-31T12:00:00Z 2026-10-31T12:00:00Z"},
		{"", "0 12 30 * *", utc, "2026-01-30T12:00:00Z", "2026-03-30T12:00:00Z"},
		{"jmrozanec/cron-utils#69", "0 * * * 1-5", utc, "2016-02-29T11:00:00Z", "2016-02-29T12:00:00Z"},
		{"taichino/croniter#55", "0 9 29 2 *", utc, "2016-02-29T09:00:00Z", "2020-02-29T09:00:00Z 2024-02-29T09:00:00Z"},
		{"cert-manager/cert-manager#9148", "0 0 29 2 *", utc, "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z"},
		{"jmrozanec/cron-utils#538", "0 0 1 * *", utc, "2099-12-31T00:00:00Z", "2100-01-01T00:00:00Z 2100-02-01T00:00:00Z 2100-03-01T00:00:00Z"},
		{"", "0 0 28,29 2 *", utc, "2100-02-01T00:00:00Z", "2100-02-28T00:00:00Z 2101-02-28T00:00:00Z"},
		{"", "14 3 * * *", utc, "2038-01-18T03:14:00Z", "2038-01-19T03:14:00Z 2038-01-20T03:14:00Z"},
		{"", "* * * * *", utc, "2038-01-19T03:14:07Z", "2038-01-19T03:15:00Z"},
		{"", "59 23 31 12 *", utc, "2026-12-31T23:59:00Z", "2027-12-31T23:59:00Z"},

		{"dkron-io/dkron#605", "@every 1440m", utc, "2019-09-17T09:30:00Z", "2019-09-18T00:00:00Z 2019-09-19T00:00:00Z"},
		{"dkron-io/dkron#546", "@every 10m", "America/Los_Angeles", "2019-06-14T09:20:59-07:00", "2019-06-14T09:30:00-07:00 2019-06-14T09:40:00-07:00"},
		{"dkron-io/dkron#469", "@every 10s", utc, "2018-12-05T11:30:38Z", "2018-12-05T11:30:40Z 2018-12-05T11:30:50Z"},
		{"", "@every 90m", "Europe/Berlin", "2026-03-29T00:30:00+01:00", "2026-03-29T01:00:00+01:00 2026-03-29T03:30:00+02:00"},
		{"", "@weekly", utc, monday, "2026-03-08T00:00:00Z"},
		{"", "@midnight", "Asia/Kolkata", "2026-03-02T12:00:00+05:30", "2026-03-03T00:00:00+05:30"},
		{"", "@annually", utc, monday, "2027-01-01T00:00:00Z 2028-01-01T00:00:00Z"},
		{"", "@always", utc, monday, ""},
	}
}

// gaps are where a clock is put forward.
func gaps() []conformance {
	const losAngeles, newYork, berlin = "America/Los_Angeles", "America/New_York", "Europe/Berlin"
	return []conformance{
		{"robfig/cron#12", "0 2 * * *", losAngeles, "2014-03-09T01:00:00-08:00", "2014-03-09T03:00:00-07:00 2014-03-10T02:00:00-07:00"},
		{"robfig/cron#12", "0 * * * *", losAngeles, "2014-03-09T01:00:00-08:00", "2014-03-09T03:00:00-07:00 2014-03-09T04:00:00-07:00"},
		{"robfig/cron#541", "0 2 * * *", losAngeles, "2025-03-08T12:00:00-08:00", "2025-03-09T03:00:00-07:00 2025-03-10T02:00:00-07:00"},
		{"hashicorp/nomad#3392", "30 2 * * *", berlin, "2018-03-24T12:00:00+01:00", "2018-03-25T03:00:00+02:00 2018-03-26T02:30:00+02:00"},
		{"hashicorp/nomad#5410", "0 2 * * *", newYork, "2019-03-09T12:00:00-05:00", "2019-03-10T03:00:00-04:00 2019-03-11T02:00:00-04:00"},
		{"hashicorp/nomad#7289", "* * * * *", newYork, "2020-03-08T01:58:00-05:00", "2020-03-08T01:59:00-05:00 2020-03-08T03:00:00-04:00 2020-03-08T03:01:00-04:00"},
		{"hashicorp/cronexpr#1", "30 2 * * *", newYork, "2019-03-09T12:00:00-05:00", "2019-03-10T03:00:00-04:00 2019-03-11T02:30:00-04:00"},
		{"aptible/supercronic#86", "0 * * * *", losAngeles, "2021-03-14T00:30:00-08:00", "2021-03-14T01:00:00-08:00 2021-03-14T03:00:00-07:00"},
		{"aptible/supercronic#189", "0 */2 * * *", losAngeles, "2021-03-13T23:00:00-08:00", "2021-03-14T00:00:00-08:00 2021-03-14T03:00:00-07:00 2021-03-14T04:00:00-07:00"},
		{"gorhill/cronexpr#24", "0 14 * * *", losAngeles, "2016-03-12T14:01:00-08:00", "2016-03-13T14:00:00-07:00"},
		{"kelektiv/node-cron#563", "30 2 * * *", newYork, "2021-03-13T02:30:00-05:00", "2021-03-14T03:00:00-04:00 2021-03-15T02:30:00-04:00"},
		{"harrisiirak/cron-parser#378", "0 2 * * *", newYork, "2020-03-08T03:01:00-04:00", "2020-03-09T02:00:00-04:00"},
		{"Hexagon/croner#284", "0 * * * *", "UTC", "2025-10-05T02:00:00Z", "2025-10-05T03:00:00Z"},
		{"", "*/15 * * * *", berlin, "2026-03-29T01:30:00+01:00", "2026-03-29T01:45:00+01:00 2026-03-29T03:00:00+02:00 2026-03-29T03:15:00+02:00"},
		{"", "15,45 2 * * *", berlin, "2026-03-28T12:00:00+01:00", "2026-03-29T03:00:00+02:00 2026-03-30T02:15:00+02:00"},
		{"", "0 2,3 * * *", berlin, "2026-03-28T12:00:00+01:00", "2026-03-29T03:00:00+02:00 2026-03-30T02:00:00+02:00"},
		{"", "30 2 29 3 *", berlin, "2026-01-01T00:00:00+01:00", "2026-03-29T03:00:00+02:00 2027-03-29T02:30:00+02:00"},
		{"", "30 2 * * 0", berlin, "2026-03-23T00:00:00+01:00", "2026-03-29T03:00:00+02:00 2026-04-05T02:30:00+02:00"},
		{"", "30 2 * * *", berlin, "2050-03-26T12:00:00+01:00", "2050-03-27T03:00:00+02:00 2050-03-28T02:30:00+02:00"},
		{"a slot at the end of a gap, asked at it", "30 2 * * *", berlin, "2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"},

		{"robfig/cron#157", "0 9 10 * *", "America/Sao_Paulo", "2018-10-17T00:00:00-03:00", "2018-11-10T09:00:00-02:00 2018-12-10T09:00:00-02:00"},
		{"nats-io/nats-server#8543", "0 1 * * 0", "America/Sao_Paulo", "2018-11-03T23:00:00-03:00", "2018-11-04T01:00:00-02:00"},
		{"harrisiirak/cron-parser#25", "@daily", "America/Sao_Paulo", "2014-10-18T12:00:00-03:00", "2014-10-19T01:00:00-02:00 2014-10-20T00:00:00-02:00"},
		{"jmrozanec/cron-utils#332", "0 6 * * *", "America/Santiago", "2018-08-11T12:00:00-04:00", "2018-08-12T06:00:00-03:00"},
		{"PrefectHQ/prefect#5957", "0 0 * * 0", "America/Santiago", "2022-09-04T12:00:00-04:00", "2022-09-11T01:00:00-03:00 2022-09-18T00:00:00-03:00"},
		{"spring-projects/spring-framework#36859", "0 */2 * * *", "Africa/Cairo", "2025-04-24T21:10:20+02:00", "2025-04-24T22:00:00+02:00 2025-04-25T01:00:00+03:00 2025-04-25T02:00:00+03:00"},
		{"", "@daily", "Asia/Beirut", "2024-03-30T12:00:00+02:00", "2024-03-31T01:00:00+03:00 2024-04-01T00:00:00+03:00"},
		{"", "30 0 * * *", "Atlantic/Azores", "2024-03-30T12:00:00-01:00", "2024-03-31T01:00:00Z 2024-04-01T00:30:00Z"},
		{"", "0 0 * * *", "America/Havana", "2024-03-09T12:00:00-05:00", "2024-03-10T01:00:00-04:00 2024-03-11T00:00:00-04:00"},
		{"", "0 0 * * *", "Asia/Tehran", "2022-03-21T12:00:00+03:30", "2022-03-22T01:00:00+04:30 2022-03-23T00:00:00+04:30"},
	}
}

// overlaps are where a clock is put back.
func overlaps() []conformance {
	const losAngeles, newYork, berlin = "America/Los_Angeles", "America/New_York", "Europe/Berlin"
	return []conformance{
		{"robfig/cron#12", "0 1 * * *", losAngeles, "2014-11-01T12:00:00-07:00", "2014-11-02T01:00:00-07:00 2014-11-03T01:00:00-08:00"},
		{"robfig/cron#12", "0 * * * *", losAngeles, "2014-11-02T00:30:00-07:00", "2014-11-02T01:00:00-07:00 2014-11-02T01:00:00-08:00 2014-11-02T02:00:00-08:00"},
		{"kubernetes/kubernetes#121594", "0 2 * * *", berlin, "2023-10-28T02:00:00+02:00", "2023-10-29T02:00:00+02:00 2023-10-30T02:00:00+01:00"},
		{"hashicorp/nomad#3392", "30 2 * * *", berlin, "2017-10-28T12:00:00+02:00", "2017-10-29T02:30:00+02:00 2017-10-30T02:30:00+01:00"},
		{"hashicorp/nomad#7894", "30 1 * * *", newYork, "2019-11-02T12:00:00-04:00", "2019-11-03T01:30:00-04:00 2019-11-04T01:30:00-05:00"},
		{"harrisiirak/cron-parser#273", "10 1 * * 0", "America/Toronto", "2020-11-01T01:55:00-04:00", "2020-11-08T01:10:00-05:00"},
		{"harrisiirak/cron-parser#273", "10 1 * * 0", "America/Toronto", "2020-11-01T01:00:00-05:00", "2020-11-08T01:10:00-05:00"},
		{"healthchecks/healthchecks#196", "0 2 * * *", "Europe/Copenhagen", "2018-10-27T02:00:00+02:00", "2018-10-28T02:00:00+02:00 2018-10-29T02:00:00+01:00"},
		{"kelektiv/node-cron#881", "*/30 * * * *", "Australia/Melbourne", "2024-04-07T02:00:00+11:00", "2024-04-07T02:30:00+11:00 2024-04-07T02:00:00+10:00 2024-04-07T02:30:00+10:00 2024-04-07T03:00:00+10:00"},
		{"kelektiv/node-cron#120", "* * * * *", newYork, "2014-11-02T01:58:00-04:00", "2014-11-02T01:59:00-04:00 2014-11-02T01:00:00-05:00 2014-11-02T01:01:00-05:00"},
		{"taichino/croniter#87", "0 0 * * *", "America/Sao_Paulo", "2018-02-17T00:05:00-02:00", "2018-02-18T00:00:00-03:00"},
		{"jmrozanec/cron-utils#112", "* * * * *", "America/Sao_Paulo", "2016-02-20T23:00:00-03:00", "2016-02-20T23:01:00-03:00"},
		{"", "30 23 * * *", "America/Sao_Paulo", "2018-02-17T12:00:00-02:00", "2018-02-17T23:30:00-02:00 2018-02-18T23:30:00-03:00"},
		{"", "*/15 2 * * *", berlin, "2026-10-25T01:00:00+02:00", "2026-10-25T02:00:00+02:00 2026-10-25T02:15:00+02:00 2026-10-25T02:30:00+02:00 2026-10-25T02:45:00+02:00 2026-10-26T02:00:00+01:00"},
		{"", "0 */2 * * *", berlin, "2026-10-25T01:00:00+02:00", "2026-10-25T02:00:00+02:00 2026-10-25T04:00:00+01:00"},
		{"", "@hourly", berlin, "2026-10-25T01:30:00+02:00", "2026-10-25T02:00:00+02:00 2026-10-25T02:00:00+01:00 2026-10-25T03:00:00+01:00"},
		{"the end of the overlap comes once", "0 3 * * *", berlin, "2026-10-25T00:00:00+02:00", "2026-10-25T03:00:00+01:00 2026-10-26T03:00:00+01:00"},
		{"", "@daily", "Africa/Cairo", "2025-10-30T12:00:00+03:00", "2025-10-31T00:00:00+02:00"},
		{"", "15 23 * * *", "Africa/Cairo", "2025-10-30T12:00:00+03:00", "2025-10-30T23:15:00+03:00 2025-10-31T23:15:00+02:00"},
		{"", "@daily", "Asia/Beirut", "2024-10-26T12:00:00+03:00", "2024-10-27T00:00:00+02:00"},
		{"", "30 0 * * *", "Atlantic/Azores", "2024-10-26T12:00:00Z", "2024-10-27T00:30:00Z 2024-10-28T00:30:00-01:00"},
		{"", "30 0 * * *", "America/Havana", "2024-11-02T12:00:00-04:00", "2024-11-03T00:30:00-04:00 2024-11-04T00:30:00-05:00"},
		{"jensrossbach/node-red-contrib-chronos#255", "30 1 * * *", "Europe/London", "2026-10-24T12:00:00+01:00", "2026-10-25T01:30:00+01:00 2026-10-26T01:30:00Z"},
	}
}

// oddZones do other things than an hour twice a year.
func oddZones() []conformance {
	const lordHowe, troll, apia = "Australia/Lord_Howe", "Antarctica/Troll", "Pacific/Apia"
	return []conformance{
		{"elizaOS/eliza#11100", "45 1 * * *", lordHowe, "2026-04-04T12:00:00+11:00", "2026-04-05T01:45:00+11:00 2026-04-06T01:45:00+10:30"},
		{"pallets-eco/croniter#266", "0 * * * *", lordHowe, "2026-10-04T00:30:00+10:30", "2026-10-04T01:00:00+10:30 2026-10-04T03:00:00+11:00"},
		{"", "0 2 * * *", lordHowe, "2026-10-03T12:00:00+10:30", "2026-10-04T02:30:00+11:00 2026-10-05T02:00:00+11:00"},
		{"", "30 2 * * *", lordHowe, "2026-10-03T12:00:00+10:30", "2026-10-04T02:30:00+11:00 2026-10-05T02:30:00+11:00"},
		{"", "*/15 * * * *", lordHowe, "2026-10-04T01:30:00+10:30", "2026-10-04T01:45:00+10:30 2026-10-04T02:30:00+11:00"},
		{"", "0 * * * *", lordHowe, "2026-04-05T01:30:00+11:00", "2026-04-05T02:00:00+10:30 2026-04-05T03:00:00+10:30"},
		{"", "* * * * *", lordHowe, "2026-04-05T01:58:00+11:00", "2026-04-05T01:59:00+11:00 2026-04-05T01:30:00+10:30"},
		{"", "0 3 * * *", "Pacific/Chatham", "2024-09-28T12:00:00+12:45", "2024-09-29T03:45:00+13:45 2024-09-30T03:00:00+13:45"},
		{"", "0 3 * * *", "Pacific/Chatham", "2024-04-06T12:00:00+13:45", "2024-04-07T03:00:00+13:45 2024-04-08T03:00:00+12:45"},
		{"harrisiirak/cron-parser#419", "30 1 * * *", troll, "2026-03-28T01:30:00Z", "2026-03-29T03:00:00+02:00 2026-03-30T01:30:00+02:00"},
		{"harrisiirak/cron-parser#435", "0 1,2 * * *", troll, "2026-03-28T12:00:00Z", "2026-03-29T03:00:00+02:00 2026-03-30T01:00:00+02:00"},
		{"", "30 1,2 * * *", troll, "2026-10-24T12:00:00+02:00", "2026-10-25T01:30:00+02:00 2026-10-25T02:30:00+02:00 2026-10-26T01:30:00Z"},
		{"", "@hourly", troll, "2026-10-25T01:30:00+02:00", "2026-10-25T02:00:00+02:00 2026-10-25T01:00:00Z 2026-10-25T02:00:00Z 2026-10-25T03:00:00Z"},
		{"winter is the exception: negative DST", "30 1 * * *", "Europe/Dublin", "2026-03-28T12:00:00Z", "2026-03-29T02:00:00+01:00 2026-03-30T01:30:00+01:00"},
		{"", "30 1 * * *", "Europe/Dublin", "2026-10-24T12:00:00+01:00", "2026-10-25T01:30:00+01:00 2026-10-26T01:30:00Z"},
		{"Ramadan", "30 2 * * *", "Africa/Casablanca", "2024-03-09T12:00:00+01:00", "2024-03-10T02:30:00+01:00 2024-03-11T02:30:00Z"},
		{"and its end", "30 2 * * *", "Africa/Casablanca", "2024-04-13T12:00:00Z", "2024-04-14T03:00:00+01:00 2024-04-15T02:30:00+01:00"},
		{"30 December 2011 was skipped", "30 12 * * *", apia, "2011-12-29T12:30:00-10:00", "2011-12-31T00:00:00+14:00 2011-12-31T12:30:00+14:00"},
		{"", "0 0 30 * *", apia, "2011-12-01T00:00:00-10:00", "2011-12-31T00:00:00+14:00 2012-01-30T00:00:00+14:00"},
		{"", "0 0 31 12 *", apia, "2011-12-01T00:00:00-10:00", "2011-12-31T00:00:00+14:00 2012-12-31T00:00:00+14:00"},
		{"", "@hourly", apia, "2011-12-29T22:30:00-10:00", "2011-12-29T23:00:00-10:00 2011-12-31T00:00:00+14:00 2011-12-31T01:00:00+14:00"},
		{"", "0 0 * * 5", apia, "2011-12-28T00:00:00-10:00", "2011-12-31T00:00:00+14:00 2012-01-06T00:00:00+14:00"},
		{"21 August 1993 was skipped", "0 6 * * *", "Pacific/Kwajalein", "1993-08-20T06:00:00-12:00", "1993-08-22T00:00:00+12:00 1993-08-22T06:00:00+12:00"},
		{"one offset for another, for good", "45 23 * * *", "Asia/Pyongyang", "2015-08-14T12:00:00+09:00", "2015-08-14T23:45:00+09:00 2015-08-15T23:45:00+08:30"},
		{"", "45 23 * * *", "Asia/Pyongyang", "2018-05-04T12:00:00+08:30", "2018-05-05T00:00:00+09:00 2018-05-05T23:45:00+09:00"},
		{"", "45 2 * * *", "America/Caracas", "2016-04-30T12:00:00-04:30", "2016-05-01T03:00:00-04:00 2016-05-02T02:45:00-04:00"},
		{"", "10 0 * * *", "Asia/Kathmandu", "1985-12-31T12:00:00+05:30", "1986-01-01T00:15:00+05:45 1986-01-02T00:10:00+05:45"},
		{"", "30 23 * * *", "Asia/Almaty", "2024-02-29T12:00:00+06:00", "2024-02-29T23:30:00+06:00 2024-03-01T23:30:00+05:00"},
		{"", "30 23 * * *", "Africa/Juba", "2021-01-31T12:00:00+03:00", "2021-01-31T23:30:00+03:00 2021-02-01T23:30:00+02:00"},
		{"", "30 1 * * *", "Europe/Volgograd", "2020-12-26T12:00:00+04:00", "2020-12-27T01:30:00+04:00 2020-12-28T01:30:00+03:00"},
		{"no longer", "30 3 * * *", "Europe/Istanbul", "2024-03-30T12:00:00+03:00", "2024-03-31T03:30:00+03:00 2024-04-01T03:30:00+03:00"},
		{"", "0 0 * * *", "Etc/GMT+12", "2026-03-02T12:00:00-12:00", "2026-03-03T00:00:00-12:00"},
		{"", "0 0 1 1 *", "Pacific/Kiritimati", "2026-03-02T12:00:00+14:00", "2027-01-01T00:00:00+14:00"},
	}
}
