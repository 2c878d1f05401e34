//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// report has the results of one suite on one target.
type report []result

// played is now, on this kernel.
func played() string {
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return time.Now().UTC().Format(time.DateOnly) + ", Linux " + strings.TrimSpace(string(kernel))
}

// read reads what -json has printed. Of a case that was played again the last result counts.
func read(files []string) (reports []report, err error) {
	var all []result
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		for d := json.NewDecoder(bytes.NewReader(text)); d.More(); {
			var r result
			if err := d.Decode(&r); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			again := slices.IndexFunc(all, func(o result) bool { return o.Suite == r.Suite && o.Target == r.Target && o.ID == r.ID })
			if again < 0 {
				all = append(all, r)
			} else {
				all[again] = r
			}
		}
	}
	for i, r := range all {
		if i == 0 || r.Suite != all[i-1].Suite || r.Target != all[i-1].Target {
			reports = append(reports, nil)
		}
		reports[len(reports)-1] = append(reports[len(reports)-1], r)
	}
	return reports, nil
}

// write prints the reports and reports whether no target failed.
func write(w io.Writer, o options, reports []report) (ok bool, err error) {
	ok = true
	for _, r := range reports {
		ok = ok && !slices.ContainsFunc(r, result.bad)
	}
	switch {
	case o.json:
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		for _, r := range reports {
			for _, c := range r {
				if err := e.Encode(c); err != nil {
					return false, err
				}
			}
		}
	case o.markdown:
		for _, s := range o.suites {
			table(w, s, reports)
		}
	default:
		for _, r := range reports {
			r.print(w)
		}
	}
	return ok, nil
}

// counts are how many cases had each verdict.
func (r report) counts() map[string]int {
	n := map[string]int{}
	for _, c := range r {
		n[c.Verdict]++
	}
	return n
}

// print names what failed, and counts all.
func (r report) print(w io.Writer) {
	for _, c := range r {
		if c.bad() {
			fmt.Fprintf(w, "%s: %s: %s: %s\n", c.Target, c.Verdict, c.ID, c.Why)
		}
	}
	n, parts := r.counts(), []string{}
	for _, v := range verdicts[r[0].Suite] {
		parts = append(parts, fmt.Sprintf("%d %s", n[v], v))
	}
	fmt.Fprintf(w, "%s of %s (%s): %s\n", r[0].Suite, r[0].Target, r[0].Version, strings.Join(parts, ", "))
	for _, line := range r.reasons() {
		fmt.Fprintln(w, " ", line)
	}
}

// reasons say why cases were not played, with how many there are of each.
func (r report) reasons() (lines []string) {
	for _, verdict := range []string{notApplicable, leftOut} {
		n := map[string]int{}
		for _, c := range r {
			if c.Verdict == verdict {
				n[c.Why]++
			}
		}
		for _, why := range slices.Sorted(maps.Keys(n)) {
			lines = append(lines, fmt.Sprintf("%s: %d: %s", verdict, n[why], why))
		}
	}
	return lines
}

// table prints the results of a suite on all targets.
func table(w io.Writer, name string, reports []report) {
	reports = slices.DeleteFunc(slices.Clone(reports), func(r report) bool { return r[0].Suite != name })
	fmt.Fprintf(w, "### %s\n\n| target | version | played | %s |\n|---|---|---|%s\n", name, strings.Join(verdicts[name], " | "), strings.Repeat("--:|", len(verdicts[name])))
	for _, r := range reports {
		n := r.counts()
		fmt.Fprintf(w, "| %s | %s | %s |", r[0].Target, r[0].Version, r[0].Played)
		for _, v := range verdicts[name] {
			fmt.Fprintf(w, " %d |", n[v])
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w)
	for _, r := range reports {
		r.printFailures(w)
	}
}

// printFailures names the cases that failed, and says why others were not played.
func (r report) printFailures(w io.Writer) {
	fmt.Fprintf(w, "%s:\n\n", r[0].Target)
	for _, verdict := range []string{"failed", "escaped", "broken"} {
		var ids []string
		for _, c := range r {
			if c.Verdict == verdict {
				ids = append(ids, c.ID)
			}
		}
		if len(ids) > 0 {
			fmt.Fprintf(w, "- %s: %s\n", verdict, strings.Join(ids, ", "))
		}
	}
	for _, line := range r.reasons() {
		if !strings.HasPrefix(line, leftOut) { // the same for every target
			fmt.Fprintln(w, "-", line)
		}
	}
	fmt.Fprintln(w)
}
