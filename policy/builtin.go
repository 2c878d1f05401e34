package policy

// builtinRules returns the rules that stand before every file. They deny or ask,
// never allow, and can be switched off by their id.
func builtinRules(o Options) (commands, paths []Rule) {
	return builtinCommands(), append(builtinPaths(), Rule{
		ID: "builtin:toold", Action: Deny, Paths: treesOf(o.Protected),
		Reason: "these are the daemon's own files; changing or reading them would undo its decisions",
	})
}

// treesOf makes patterns of folders and files and all that is below them.
func treesOf(paths []string) []string {
	var out []string
	for _, p := range paths {
		out = append(out, escapeMeta(p)+"/**")
	}
	return out
}

// builtinPaths protects secrets, and files that make other programs run code.
func builtinPaths() []Rule {
	return []Rule{
		{
			ID: "builtin:secrets", Action: Deny, Ops: []Kind{Read, Write}, Reason: "it holds keys or passwords",
			Paths: []string{
				"~/.ssh/**", "~/.gnupg/**", "~/.aws/**", "~/.azure/**", "~/.config/gcloud/**", "~/.netrc", "~/.git-credentials",
				"~/.config/gh/hosts.yml", "~/.docker/config.json", "~/.kube/**", "~/.npmrc", "~/.pypirc", "~/.cargo/credentials*",
				"~/.password-store/**", "~/.local/share/keyrings/**", "**/id_rsa", "**/id_ed25519", "**/id_ecdsa", "**/id_dsa",
				"/etc/shadow*", "/etc/gshadow*", "/etc/sudoers", "/etc/sudoers.d/**", "/etc/ssh/ssh_host_*",
			},
		},
		{
			ID: "builtin:process-memory", Action: Deny, Ops: []Kind{Read, Write}, Reason: "it is an alias of another process's files or memory",
			Paths: []string{
				"/proc/*/environ", "/proc/*/mem", "/proc/*/root/**", "/proc/*/cwd/**", "/proc/*/fd/**", "/proc/*/map_files/**", "/proc/*/maps",
				"/proc/*/task/*/{environ,mem,maps}", "/proc/*/task/*/{root,cwd,fd}/**", "/proc/kcore", "/dev/mem", "/dev/kmem", "/dev/fd/**",
			},
		},
		{
			ID: "builtin:shell-startup", Action: Deny, Ops: []Kind{Write}, Reason: "programs run what stands in it",
			Paths: []string{
				"~/.{bashrc,bash_profile,bash_login,bash_logout,profile,zshrc,zshenv,zprofile,zlogin,inputrc,vimrc,pam_environment}",
				"~/.gitconfig", "~/.config/{git,fish,nvim,systemd,autostart,environment.d}/**", "~/Library/LaunchAgents/**",
				"~/.local/bin/**", "~/bin/**", "~/.vim/**",
			},
		},
		{
			ID: "builtin:git-config", Action: Deny, Ops: []Kind{Write}, Reason: "git runs programs that are named there",
			Paths: []string{
				"**/.git", "**/.git/commondir", "**/.git/hooks/**", "**/.git/config", "**/.git/config.worktree", "**/.git/info/attributes", "**/.git/modules/**/{config,hooks}",
				"**/.git/modules/**/hooks/**", "**/.git/worktrees/*/config.worktree",
				"${workspace}/.git/hooks/**", "${workspace}/.git/config", "${workspace}/.git/info/attributes",
			},
		},
		{
			ID: "builtin:workspace-policy", Action: Deny, Ops: []Kind{Write}, Reason: "it holds the workspace's own policy, which calls must not loosen",
			Paths: []string{"${workspace}/.toold/**"},
		},
		{
			ID: "builtin:system", Action: Deny, Ops: []Kind{Write}, Reason: "it belongs to the operating system",
			Paths: []string{
				"/etc/**", "/usr/**", "/bin/**", "/sbin/**", "/lib/**", "/lib32/**", "/lib64/**", "/libx32/**", "/boot/**", "/sys/**", "/proc/**",
				"/dev/{sd,hd,vd,xvd,nvme,mmcblk,loop,dm-,md}*", "/dev/mapper/**", "/System/**", "/Library/**",
			},
		},
		{
			ID: "builtin:run-later", Action: Ask, Ops: []Kind{Write}, Reason: "other programs run or obey what stands in it",
			Paths: []string{
				"**/.{vscode,idea,husky,claude,letta,cursor,devcontainer}/**", "**/.{envrc,mcp.json,gitmodules,gitattributes,npmrc,yarnrc,yarnrc.yml}",
				"**/.github/workflows/**", "**/CLAUDE.md", "**/AGENTS.md",
			},
		},
	}
}

// builtinCommands denies what no agent should need.
func builtinCommands() []Rule {
	return []Rule{
		{
			ID: "builtin:machine", Action: Deny, Reason: "it changes the machine itself",
			Run: []string{
				"{mkfs,mkfs.ext2,mkfs.ext3,mkfs.ext4,mkfs.xfs,mkfs.btrfs,mkfs.vfat,mkswap,wipefs,fdisk,sfdisk,cfdisk,parted} **",
				"{shutdown,reboot,halt,poweroff,insmod,rmmod,modprobe,kexec} **", "dd of=/dev/{sd,hd,vd,xvd,nvme,mmcblk}* **",
			},
		},
		{
			ID: "builtin:wipe", Action: Deny, Reason: "it removes everything",
			Run: []string{
				"rm -r {/,/.,//,/bin,/boot,/dev,/etc,/home,/lib,/opt,/root,/sbin,/sys,/usr,/var} **",
				"{chmod,chown,chgrp} -R * {/,/bin,/boot,/dev,/etc,/home,/lib,/root,/usr,/var} **", "rm --no-preserve-root **",
			},
		},
	}
}
