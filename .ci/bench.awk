# Makes a table of the output of go test -bench.
/^pkg:/ { pkg = $2; sub(/^github.com\/toold\/toold\//, "", pkg); next }
/^Benchmark/ && NF > 3 {
	name = $1; sub(/^Benchmark/, "", name); sub(/-[0-9]+$/, "", name)
	printf "%-18s %-32s", pkg, name
	for (i = 3; i < NF; i += 2) printf " %14s %-10s", $i, $(i + 1)
	print ""
	next
}
/^(---|FAIL|panic)/ { print; failed = 1 }
END { exit failed }
