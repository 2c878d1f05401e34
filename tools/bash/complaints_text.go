package bash

import "regexp"

// Messages of programs when the kernel refuses an access (strerror(3) in the locale C).
var (
	// The first group may refuse a read too, the second may mean a hidden path.
	refusalText = regexp.MustCompile(`(?i)read-only file system|device or resource busy|operation not permitted|invalid cross-device link|(permission denied)|(no such file or directory)`)

	changeWord = regexp.MustCompile(`(?i)\b(?:creat\w*|writ\w*|writing|remov\w*|delet\w*|unlink|mkdir|rmdir|make directory|touch|mov[ei]\w*|renam\w*|overwrite|truncate|append\w*|chmod|chown|symlink|link|lock|save|update|install|mknod|mkfifo|output file)\b`)

	quotedText   = regexp.MustCompile("['\"`‘“]([^'\"`‘’“”]+)['\"`’”]")
	absoluteText = regexp.MustCompile("(?:^|[ '\"`‘“])(/[^ '\"`‘’“”:]+)['\"`’”]?:?$")

	hostText = regexp.MustCompile(`(?i)(?:could not resolve(?: host(?:name)?)?:? |unable to resolve host address |getaddrinfo (?:eai_again|enotfound) |failed to resolve |temporary failure resolving |dial \w+: lookup |connect enetunreach |dial tcp |connect to (?:host )?)['"‘“]?([a-z0-9][a-z0-9._-]*)` +
		`|([a-z0-9][a-z0-9._-]*): (?:temporary failure in name resolution|name or service not known)`)
	unreachableText = regexp.MustCompile(`(?i)could not resolve|unable to resolve|getaddrinfo|failed to resolve|failure resolving|name resolution|name or service not known|dial \w+: lookup |network is unreachable|enetunreach|could not connect to server|couldn't connect to server`)
	portText        = regexp.MustCompile(`(?i)connect to (?:host )?([a-z0-9][a-z0-9._-]*) port ([0-9]{1,5})\b`)

	socketText = regexp.MustCompile(`(?i)(?:unix://|socket|connect).*?(/(?:var/)?run/[^ '"()<>:]+)`)

	callText = regexp.MustCompile(`(?i)(?:\b(ptrace|unshare|setns|pivot_root|bpf|perf_event_open|io_uring_setup|io_uring_queue_init|userfaultfd)\b|^(mount|umount): |(new namespace|user namespace)).*(?:not permitted|permission denied|not implemented)|no permissions to create (?:a )?new (namespace)`)

	egressKey = regexp.MustCompile(`sandbox\.egress\.[a-z_]+`)

	openFilesText = regexp.MustCompile(`(?i)too many open files`)
	fullText      = regexp.MustCompile(`(?i)no space left on device`)
	largeText     = regexp.MustCompile(`(?i)file too large|file size limit exceeded`)
)
