// The forms of the API's page: send what the reader wrote, show the reply as text.

for (const form of document.querySelectorAll("form.try")) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const reply = form.querySelector("pre");
    reply.hidden = false;
    reply.textContent = "…";
    try {
      reply.textContent = await ask(form);
    } catch (error) {
      reply.textContent = String(error);
    }
  });
}

async function ask(form) {
  let path = form.dataset.path;
  const query = new URLSearchParams();
  for (const input of form.querySelectorAll("input")) {
    if (input.dataset.in === "path") {
      path = path.replace(`{${input.name}}`, encodeURIComponent(input.value));
    } else if (input.value !== "") {
      query.set(input.name, input.value);
    }
  }
  const request = { method: form.dataset.method };
  if (form.elements.body) {
    request.headers = { "Content-Type": "application/json" };
    request.body = form.elements.body.value;
  }
  const response = await fetch(query.size ? `${path}?${query}` : path, request);
  const text = await response.text();
  return `${response.status} ${response.statusText}\n${indented(text)}`;
}

function indented(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2).slice(0, 20000);
  } catch {
    return text.slice(0, 20000);
  }
}
