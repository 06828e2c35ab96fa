"""Numbers of the kernel's calls that the snippets knock on, for both machines that the sandbox knows."""

from __future__ import annotations

import platform

__all__ = ["NUMBERS"]

X86_64 = """
read 0 write 1 open 2 close 3 stat 4 mmap 9 mprotect 10 ioctl 16 pipe 22 madvise 28 shmget 29 shmat 30 dup 32 dup2 33
pause 34 getpid 39 sendmsg 46 socket 41 connect 42 sendto 44 socketpair 53 clone 56 fork 57 vfork 58 execve 59 kill 62
semget 64 msgget 68 fcntl 72 truncate 76 ftruncate 77 rename 82 mkdir 83 creat 85 link 86 unlink 87 symlink 88
readlink 89 chmod 90 chown 92 ptrace 101 syslog 103 setuid 105 setgid 106 setreuid 113 setgroups 116 setresuid 117
setfsuid 122 capget 125 capset 126 rt_sigqueueinfo 129 mknod 133 personality 135 setpriority 141 mlock 149
modify_ldt 154 pivot_root 155 prctl 157 arch_prctl 158 adjtimex 159 setrlimit 160 chroot 161 acct 163 settimeofday 164
mount 165 umount2 166 swapon 167 reboot 169 sethostname 170 setdomainname 171 iopl 172 ioperm 173 init_module 175
delete_module 176 quotactl 179 setxattr 188 getxattr 191 listxattr 194 tkill 200 sched_setaffinity 203 io_setup 206
remap_file_pages 216 timer_create 222 clock_settime 227 tgkill 234 mbind 237 set_mempolicy 238 mq_open 240
kexec_load 246 add_key 248 request_key 249 keyctl 250 migrate_pages 256 openat 257 mkdirat 258 mknodat 259 fchownat 260
unlinkat 263 renameat 264 linkat 265 symlinkat 266 readlinkat 267 fchmodat 268 unshare 272 splice 275 tee 276
vmsplice 278 move_pages 279 utimensat 280 timerfd_create 283 fallocate 285 signalfd4 289 eventfd2 290 epoll_create1 291
inotify_init1 294 rt_tgsigqueueinfo 297 perf_event_open 298 fanotify_init 300 fanotify_mark 301 prlimit64 302
name_to_handle_at 303 open_by_handle_at 304 clock_adjtime 305 setns 308 process_vm_readv 310 process_vm_writev 311
kcmp 312 finit_module 313 sched_setattr 314 renameat2 316 seccomp 317 getrandom 318 memfd_create 319 bpf 321
execveat 322 userfaultfd 323 pkey_mprotect 329 pkey_alloc 330 statx 332
"""
ARM64 = """
io_setup 0 setxattr 5 getxattr 8 listxattr 11 eventfd2 19 epoll_create1 20 dup 23 fcntl 25 inotify_init1 26 ioctl 29
mknodat 33 mkdirat 34 unlinkat 35 symlinkat 36 linkat 37 renameat 38 umount2 39 mount 40 pivot_root 41 truncate 45
ftruncate 46 fallocate 47 chroot 51 fchmodat 53 fchownat 54 openat 56 close 57 quotactl 60 read 63 write 64 signalfd4 74
vmsplice 75 splice 76 tee 77 readlinkat 78 timerfd_create 85 utimensat 88 acct 89 capget 90 capset 91 personality 92
unshare 97 kexec_load 104 init_module 105 delete_module 106 timer_create 107 clock_settime 112 syslog 116 ptrace 117
sched_setaffinity 122 kill 129 tkill 130 tgkill 131 rt_sigqueueinfo 138 setpriority 140 reboot 142 setgid 144
setreuid 145 setuid 146 setresuid 147 setfsuid 151 setgroups 159 sethostname 161 setdomainname 162 setrlimit 164
prctl 167 settimeofday 170 adjtimex 171 getpid 172 mq_open 180 msgget 186 semget 190 shmget 194 shmat 196 socket 198
socketpair 199 connect 203 sendto 206 sendmsg 211 add_key 217 request_key 218 keyctl 219 clone 220 execve 221 mmap 222
swapon 224 mprotect 226 mlock 228 madvise 233 remap_file_pages 234 mbind 235 set_mempolicy 237 migrate_pages 238
move_pages 239 rt_tgsigqueueinfo 240 perf_event_open 241 prlimit64 261 fanotify_init 262 fanotify_mark 263
name_to_handle_at 264 open_by_handle_at 265 clock_adjtime 266 setns 268 process_vm_readv 270 process_vm_writev 271
kcmp 272 finit_module 273 sched_setattr 274 renameat2 276 seccomp 277 getrandom 278 memfd_create 279 bpf 280
execveat 281 userfaultfd 282 pkey_mprotect 288 pkey_alloc 289 statx 291
"""
BOTH = """
pidfd_send_signal 424 io_uring_setup 425 io_uring_enter 426 io_uring_register 427 open_tree 428 move_mount 429
fsopen 430 fsconfig 431 fsmount 432 pidfd_open 434 clone3 435 openat2 437 pidfd_getfd 438 process_madvise 440
mount_setattr 442 landlock_create_ruleset 444 landlock_add_rule 445 landlock_restrict_self 446 memfd_secret 447
process_mrelease 448 fchmodat2 452
"""


def _table(text: str) -> dict[str, int]:
    words = text.split()
    return dict(zip(words[::2], map(int, words[1::2]), strict=True))


NUMBERS = _table(ARM64 if platform.machine() in ("aarch64", "arm64") else X86_64) | _table(BOTH)
